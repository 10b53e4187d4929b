"""Kernels that begin before the ones in front have ended: right in every chain, wrong without their wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.faults.planter import Fault, drop, plant
from support.launches.early_chains import Bench
from support.launches.early_kernels import CASES, LARGER, Case, schedule

from wpk.device import CudaDevice
from wpk.schedules.registry import TEMPLATE_OF

pytestmark = pytest.mark.gpu

REPETITIONS = 20

LENGTH = 64
"""Launches of a chain that is timed."""

SAMPLES = 9

ONE_OF_EACH = list({case.template: case for case in CASES}.values())


def _name(case: Case) -> str:
    return f"{case.template} {case.schedule}"


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("case", CASES, ids=_name)
def test_a_chain_gives_what_one_after_the_other_gives(
    hopper: CudaDevice, case: Case, captured: bool
) -> None:
    bench = Bench(hopper, case)
    chain = bench.chain()
    for launch in chain.alone():
        hopper.launch(launch)
        hopper.synchronize()
    expected = bench.read(chain)
    graph = hopper.capture(chain.launches)
    for _ in range(REPETITIONS):
        if captured:
            graph.replay()
        else:
            for launch in chain.launches:
                hopper.launch(launch)
        assert bench.read(chain) == expected


@pytest.mark.timed
@pytest.mark.parametrize("case", [c for c in ONE_OF_EACH if c.template != "gemm_simt"], ids=_name)
def test_without_its_wait_a_kernel_overtakes(hopper: CudaDevice, case: Case) -> None:
    """So that the chains above are right because of it, not because nothing overlaps; nor does it where others compute."""
    faulty = plant(TEMPLATE_OF[case.template], Fault("no wait", drop("previous_awaited")))
    right, bench = Bench(hopper, case), Bench(hopper, case, faulty)
    chains = right.chain(), bench.chain()
    for each, chain in zip((right, bench), chains, strict=True):
        for launch in chain.alone():
            hopper.launch(launch)
            hopper.synchronize()
        each.read(chain)
    expected = right.read(chains[0])
    assert bench.read(chains[1]) == expected
    graph = hopper.capture(chains[1].launches)
    wrong = 0
    for _ in range(REPETITIONS):
        graph.replay()
        wrong += bench.read(chains[1]) != expected
    assert wrong


@pytest.mark.timed
@pytest.mark.parametrize("case", [*CASES, *LARGER], ids=_name)
def test_what_early_launch_saves(
    hopper: CudaDevice, record: Callable[[str, object], None], case: Case
) -> None:
    """Recorded: microseconds of a kernel in a chain of itself, early or not, medians."""
    bench = Bench(hopper, case)
    early = bench.kernel()
    graphs = [
        hopper.capture([launch] * LENGTH) for launch in (replace(early, attributes=()), early)
    ]
    samples: list[list[float]] = [[], []]
    for _ in range(SAMPLES):
        for graph, seconds in zip(graphs, samples, strict=True):
            seconds.append(hopper.seconds(graph) / LENGTH * 1e6)
    plain, fast = (sorted(each)[SAMPLES // 2] for each in samples)
    (source,) = TEMPLATE_OF[case.template].instantiate(case.problem, schedule(case, 1))
    record(
        f"early.{case.template}.{source.digest[:8]}",
        {"schedule": case.schedule, "problem": str(case.problem), "us": [plain, fast]},
    )
    assert min(plain, fast) > 0
