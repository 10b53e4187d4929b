"""Faults planted in kernels of sm_90; the checking mode sees every one of them.

A fault is seen when the launch fails or the numbers are not exact. What depends on which thread is ahead
shows in some order of the threads, so that several are tried.
"""

import re

import numpy as np
import pytest
from support.faults.planter import Fault, behind, change, drop, move, put
from support.hopper.catalogue import examples
from support.hopper.example import Example, run
from support.hopper.products import gemms, shared_gemms

from wpk.emulator import CHECKING, Emulator, EmulatorError
from wpk.execution import KernelImage

SEEDS = 4

EXAMPLES = {example.entry: example for example in examples()}
GEMM = next(e for e in gemms() if e.cluster == (1, 1, 4))
SHARED = next(e for e in shared_gemms() if e.expected.shape == (100, 200))


GEMM_FAULTS = [
    Fault(
        "no barrier of the cluster before the neighbours' parts are read",
        put("parts_there", "__syncthreads();"),
        "block . of the cluster may not have begun",
    ),
    Fault(
        "arrived at the cluster's barrier before the part is written",
        move("parts_there", before="part_kept"),
    ),
    Fault("not waited for the cluster", put("parts_there", "wpk::arriveCluster();")),
    Fault(
        "a block ends while others read its part",
        drop("parts_read"),
        "block . of the cluster has ended",
    ),
    Fault("tiles are not waited for", drop("tiles_awaited")),
    Fault(
        "wrong parity", change("tiles_awaited", "step / kStages & 1", "(step / kStages & 1) ^ 1")
    ),
    Fault("parity of the first phase only", change("tiles_awaited", "step / kStages & 1", "0")),
    Fault("too few bytes announced", change("bytes_expected", "2 * kBytesTile", "kBytesTile")),
    Fault(
        "too many bytes announced",
        change("bytes_expected", "2 * kBytesTile", "2 * kBytesTile + 16"),
        "0 arrivals and 16 bytes are missing",
    ),
    Fault(
        "a tile is copied to where barriers lie",
        put("place_of_barriers", "return shared + step % kStages * 8;"),
        "8192 bytes over a barrier",
    ),
    Fault("products are not waited for", drop("products_done")),
    Fault("waited for all but the last products", change("products_done", "<0>", "<1>")),
    Fault(
        "accumulators are written before the wait",
        behind("products_committed", "acc[3] = 0.0f;"),
        "accumulators are written before",
    ),
    Fault(
        "accumulators are read before the wait",
        put(
            "products_done",
            "const float early = acc[3];\nwpk::waitWgmma<0>(acc);\nacc[3] = early;",
        ),
        "wrong numbers",
    ),
    Fault("no fence in front of the products", drop("products_fenced"), "fenceWgmma is missing"),
    Fault("products without a commit", drop("products_committed")),
    Fault(
        "another swizzle",
        put("tile_of_a", "const auto a = wpk::matrixDescriptor<64>(ring.stage(step), 16, 1024);"),
    ),
    Fault(
        "groups of rows too near",
        put(
            "tile_of_b",
            "const auto b = wpk::matrixDescriptor<128>(ring.stage(step) + kBytesTile, 16, 512);",
        ),
    ),
    Fault(
        "a tile that is not aligned to its swizzle",
        change("tile_of_a", "ring.stage(step)", "ring.stage(step) + 128"),
        "not aligned to the 1024 bytes of its swizzle",
    ),
    Fault("a stage is requested while others read it", drop("stage_read")),
    Fault(
        "a barrier that more must reach",
        change("arrivals_expected", "1", "2"),
        "1 arrivals and 0 bytes are missing",
    ),
    Fault("barriers are used before they are prepared", drop("barriers_there")),
]

SHARED_FAULTS = [
    Fault(
        "stages are filled that the other block still reads",
        change("stage_released", "lane", "wpk::clusterRank()"),
    ),
    Fault(
        "only the own warps are waited for",
        change("arrivals_expected", "kBlocks * kConsumers", "kConsumers"),
    ),
    Fault("stages are not waited for", drop("stage_awaited")),
    Fault(
        "the copy for the other block is not counted",
        change("bytes_expected", "2 * kBytesTile", "2 * kBytesTile - kRowsOfA * 128"),
    ),
    Fault(
        "a copy to the own block only",
        change("a_copied", "(1 << kBlocks) - 1", "1 << rank"),
        "4096 bytes are missing",
    ),
    Fault(
        "barriers of the other block are used before they are prepared",
        put("barriers_there", "__syncthreads();"),
        "may not have begun",
    ),
    Fault("the tile is stored before all warps have written it", drop("tile_written")),
    Fault("the tile is written while others multiply", drop("stages_read")),
    Fault(
        "more threads are waited for than there are",
        change("stages_read", "kConsumers", "kThreads"),
        "threads wait at syncThreads",
    ),
    Fault("a block ends while the other arrives", drop("arrivals_over"), "has ended"),
]

OTHER_FAULTS = [
    (
        "copy_box_2",
        Fault(
            "a box begins within 16 bytes",
            change("box_copied", "{a, b}", "{a + 1, b}"),
            "no multiple of 16 bytes",
        ),
    ),
    (
        "sum_by_copies",
        Fault(
            "a copy reads what was not fenced",
            drop("part_fenced"),
            "thread .* wrote without fenceAsyncProxy",
        ),
    ),
    (
        "sum_by_copies",
        Fault(
            "a block ends while its part is copied",
            drop("part_read"),
            "of the cluster, which has ended",
        ),
    ),
    (
        "sum_by_stores",
        Fault(
            "one arrival too few is waited for",
            change("arrivals_expected", "kThreads", "kThreads - 1"),
        ),
    ),
    ("sum_by_stores", Fault("threads do not arrive", drop("thread_arrived"))),
    (
        "store_box",
        Fault(
            "a tensor store reads what was not fenced",
            drop("box_fenced"),
            "storeTensor reads shared memory .* without fenceAsyncProxy",
        ),
    ),
    (
        "store_box",
        Fault(
            "a thread ends before its store has read", drop("store_read"), "waitStores is missing"
        ),
    ),
    (
        "copy_bulk",
        Fault(
            "nobody waits for a copy",
            drop("copy_awaited"),
            "a block ends while .* bytes are under way",
        ),
    ),
]


def _outcome(example: Example, fault: Fault, seed: int) -> str | None:
    """The error that a fault causes, or that its numbers are wrong; None if it is not seen."""
    source = example.source(fault.edit)
    device = Emulator(CHECKING, seed=seed)
    try:
        result = run(example, device, KernelImage(source.digest, source, b""))
    except EmulatorError as error:
        return str(error)
    return None if np.array_equal(result, example.expected) else "wrong numbers"


def _check(example: Example, fault: Fault) -> None:
    outcomes = [_outcome(example, fault, seed) for seed in range(SEEDS)]
    seen = [outcome for outcome in outcomes if outcome is not None]
    assert seen, "not seen"
    assert any(re.search(fault.message, outcome) for outcome in seen), seen


@pytest.mark.parametrize("fault", GEMM_FAULTS, ids=lambda fault: fault.name)
def test_faults_of_a_product_in_clusters_are_seen(fault: Fault) -> None:
    _check(GEMM, fault)


@pytest.mark.parametrize("fault", SHARED_FAULTS, ids=lambda fault: fault.name)
def test_faults_of_blocks_that_copy_for_each_other_are_seen(fault: Fault) -> None:
    _check(SHARED, fault)


@pytest.mark.parametrize(
    ("entry", "fault"), OTHER_FAULTS, ids=[f"{e}: {f.name}" for e, f in OTHER_FAULTS]
)
def test_faults_of_copies_are_seen(entry: str, fault: Fault) -> None:
    _check(EXAMPLES[entry], fault)
