"""Faults planted in kernels of sm_90; the checking mode sees every one of them.

A fault is seen when the launch fails or the numbers are not exact. What depends on which thread is ahead
shows in some order of the threads, so that several are tried.
"""

import re
from dataclasses import dataclass

import numpy as np
import pytest
from support.hopper.catalogue import examples
from support.hopper.example import Example, run
from support.hopper.products import gemms, shared_gemms

from wpk.emulator.emulator import Emulator
from wpk.emulator.errors import EmulatorError
from wpk.emulator.mode import CHECKING
from wpk.execution import KernelImage

SEEDS = 4

EXAMPLES = {example.entry: example for example in examples()}
GEMM = next(e for e in gemms() if e.cluster == (1, 1, 4))
SHARED = next(e for e in shared_gemms() if e.expected.shape == (100, 200))


@dataclass(frozen=True)
class Fault:
    """One planted fault.

    Attributes:
        name: What is wrong.
        old: Text in the kernel.
        new: What replaces it.
        message: Of the error that names it; empty where the numbers are wrong, or only some error comes.
    """

    name: str
    old: str
    new: str = ""
    message: str = ""


GEMM_FAULTS = [
    Fault(
        "no barrier of the cluster before the neighbours' parts are read",
        "    wpk::syncCluster();\n    addParts",
        "    __syncthreads();\n    addParts",
        "block . of the cluster may not have begun",
    ),
    Fault(
        "arrived at the cluster's barrier before the part is written",
        "    keepPart(acc, memory);\n    wpk::syncCluster();",
        "    wpk::syncCluster();\n    keepPart(acc, memory);",
    ),
    Fault(
        "not waited for the cluster",
        "    wpk::syncCluster();\n    addParts",
        "    wpk::arriveCluster();\n    addParts",
    ),
    Fault(
        "a block ends while others read its part",
        "    wpk::syncCluster(); // nobody ends while others read\n",
        message="block . of the cluster has ended",
    ),
    Fault(
        "tiles are not waited for",
        "    wpk::waitBarrier(ring.barrier(step), step / kStages & 1);\n",
    ),
    Fault("wrong parity", "step / kStages & 1);", "(step / kStages & 1) ^ 1);"),
    Fault("parity of the first phase only", "step / kStages & 1);", "0);"),
    Fault(
        "too few bytes announced",
        "Bytes(barrier, 2 * kBytesTile)",
        "Bytes(barrier, kBytesTile)",
    ),
    Fault(
        "too many bytes announced",
        "Bytes(barrier, 2 * kBytesTile)",
        "Bytes(barrier, 2 * kBytesTile + 16)",
        "0 arrivals and 16 bytes are missing",
    ),
    Fault(
        "a tile is copied to where barriers lie",
        "return shared + kStages * 2 * kBytesTile + step % kStages * 8;",
        "return shared + step % kStages * 8;",
        "8192 bytes over a barrier",
    ),
    Fault("products are not waited for", "    wpk::waitWgmma<0>(acc);\n"),
    Fault("waited for all but the last products", "waitWgmma<0>(acc)", "waitWgmma<1>(acc)"),
    Fault(
        "accumulators are written before the wait",
        "    wpk::commitWgmma();\n",
        "    wpk::commitWgmma();\n    acc[3] = 0.0f;\n",
        "accumulators are written before",
    ),
    Fault(
        "accumulators are read before the wait",
        "    wpk::waitWgmma<0>(acc);\n",
        "    const float early = acc[3];\n    wpk::waitWgmma<0>(acc);\n    acc[3] = early;\n",
        "wrong numbers",
    ),
    Fault(
        "no fence in front of the products", "    wpk::fenceWgmma();\n", "", "fenceWgmma is missing"
    ),
    Fault("products without a commit", "    wpk::commitWgmma();\n"),
    Fault(
        "another swizzle",
        "swizzledDescriptor<128>(ring.stage(step));",
        "matrixDescriptor<64>(ring.stage(step), 16, 1024);",
    ),
    Fault(
        "groups of rows too near",
        "swizzledDescriptor<128>(ring.stage(step) + kBytesTile)",
        "matrixDescriptor<128>(ring.stage(step) + kBytesTile, 16, 512)",
    ),
    Fault(
        "a tile that is not aligned to its swizzle",
        "swizzledDescriptor<128>(ring.stage(step));",
        "swizzledDescriptor<128>(ring.stage(step) + 128);",
        "not aligned to the 1024 bytes of its swizzle",
    ),
    Fault(
        "a stage is requested while others read it",
        "        __syncthreads(); // all have read the stage\n",
    ),
    Fault(
        "a barrier that more must reach",
        "initBarrier(ring.barrier(stage), 1)",
        "initBarrier(ring.barrier(stage), 2)",
        "1 arrivals and 0 bytes are missing",
    ),
    Fault(
        "barriers are used before they are prepared",
        "    __syncthreads();\n    float acc",
        "    float acc",
    ),
]

SHARED_FAULTS = [
    Fault(
        "stages are filled that the other block still reads",
        "ring.empty(step), lane)",
        "ring.empty(step), wpk::clusterRank())",
    ),
    Fault(
        "only the own warps are waited for",
        "initBarrier(ring.empty(stage), kBlocks * kConsumers / 32)",
        "initBarrier(ring.empty(stage), kConsumers / 32)",
    ),
    Fault(
        "stages are not waited for",
        "        wpk::waitBarrierOfCluster(ring.empty(step), parityOf(step) ^ 1);\n",
    ),
    Fault(
        "the copy for the other block is not counted",
        "arriveExpectBytes(full, 2 * kBytesTile)",
        "arriveExpectBytes(full, 2 * kBytesTile - kRowsOfA * 128)",
    ),
    Fault(
        "a copy to the own block only",
        "(1 << kBlocks) - 1)",
        "1 << rank)",
        "4096 bytes are missing",
    ),
    Fault(
        "barriers of the other block are used before they are prepared",
        "    wpk::syncCluster();\n    if (threadIdx.x >= kConsumers)",
        "    __syncthreads();\n    if (threadIdx.x >= kConsumers)",
        "may not have begun",
    ),
    Fault(
        "the tile is stored before all warps have written it",
        "    wpk::syncThreads(1, kConsumers);\n    if (thread != 0)",
        "    if (thread != 0)",
    ),
    Fault(
        "the tile is written while others multiply",
        "        wpk::syncThreads(1, kConsumers);\n        storeTile",
        "        storeTile",
    ),
    Fault(
        "more threads are waited for than there are",
        "wpk::syncThreads(1, kConsumers);\n        storeTile",
        "wpk::syncThreads(1, kThreads);\n        storeTile",
        "threads wait at syncThreads",
    ),
    Fault(
        "a block ends while the other arrives",
        "    wpk::syncCluster(); // the other block still arrives here\n",
        message="has ended",
    ),
]

OTHER_FAULTS = [
    (
        "copy_box_2",
        Fault(
            "a box begins within 16 bytes",
            "copyBox(&map, y, bytes, {a, b});",
            "copyBox(&map, y, bytes, {a + 1, b});",
            "no multiple of 16 bytes",
        ),
    ),
    (
        "sum_by_copies",
        Fault(
            "a copy reads what was not fenced",
            "    wpk::fenceAsyncProxy();\n",
            message="thread .* wrote without fenceAsyncProxy",
        ),
    ),
    (
        "sum_by_copies",
        Fault(
            "a block ends while its part is copied",
            "    wpk::syncCluster(); // a block's part is read until block 0 has waited\n",
            message="of the cluster, which has ended",
        ),
    ),
    (
        "sum_by_stores",
        Fault(
            "one arrival too few is waited for",
            "initBarrier(barrier, place.blocks * kThreads)",
            "initBarrier(barrier, place.blocks * kThreads - 1)",
        ),
    ),
    (
        "sum_by_stores",
        Fault(
            "threads do not arrive",
            "    wpk::arriveBarrier(wpk::clusterAddress(barrier, 0));\n    if",
            "    if",
        ),
    ),
    (
        "store_box",
        Fault(
            "a tensor store reads what was not fenced",
            "    wpk::fenceAsyncProxy();\n",
            message="storeTensor reads shared memory .* without fenceAsyncProxy",
        ),
    ),
    (
        "store_box",
        Fault(
            "a thread ends before its store has read",
            "        wpk::waitStores<0>();\n",
            message="waitStores is missing",
        ),
    ),
    (
        "copy_bulk",
        Fault(
            "nobody waits for a copy",
            "        wpk::copyBulk(shared, x, bytes, barrier);\n    }\n    wpk::waitBarrier(barrier, 0);\n",
            "        wpk::copyBulk(shared, x, bytes, barrier);\n    }\n",
            "a block ends while .* bytes are under way",
        ),
    ),
]


def _outcome(example: Example, fault: Fault, seed: int) -> str | None:
    """The error that a fault causes, or that its numbers are wrong; None if it is not seen."""
    source = example.source(((fault.old, fault.new),))
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
