"""The chains of tests/gpu/test_early_launch.py on the emulator, which runs one launch after the other."""

from __future__ import annotations

import pytest
from support.launches import early_chains
from support.launches.early_chains import Bench
from support.launches.early_kernels import CASES, LARGER, Case, schedule

from wpk.emulator import Emulator
from wpk.execution import KernelImage
from wpk.kernel_source import KernelSource
from wpk.launch import EARLY_LAUNCH
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target


def without_machine_code(source: KernelSource) -> KernelImage:
    """A kernel as the emulator takes it; tests/schedules compile the templates for a GPU."""
    return KernelImage(source.digest, source, b"")


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.template} {c.schedule}")
def test_a_chain_gives_two_different_results_again_and_again(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(early_chains, "compiled", without_machine_code)
    bench = Bench(Emulator(), case)
    chain = bench.chain()
    assert [EARLY_LAUNCH in launch.attributes for launch in chain.launches] == [False] + [True] * 7
    seen = []
    for _ in range(2):
        for launch in chain.launches:
            bench.device.launch(launch)
        seen.append(bench.read(chain))
    first, second = seen[0]
    assert first != second
    assert seen[1] == [first, second]
    assert any(first)


@pytest.mark.parametrize("case", [*CASES, *LARGER], ids=lambda c: f"{c.template} {c.schedule}")
def test_what_is_chained_is_legal(case: Case) -> None:
    template = TEMPLATE_OF[case.template]
    assert template.why_not(case.problem, find_target("h200")) is None
    assert template.why_illegal(case.problem, schedule(case, 1), find_target("h200")) is None
