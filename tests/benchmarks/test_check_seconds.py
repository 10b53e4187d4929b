"""What the checks of a network take: every operator is measured, and every planted fault is reported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from check_seconds import PHASES, lowered_model, on_cores, shown
from subjects import host_checks
from subjects.host_checks import Cost, Phase, Row, measured

from wpk.checks.prepared import StepCase
from wpk.lowering.lowered_model import LoweredModel

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "check_seconds.py"


@pytest.fixture(scope="module")
def lowered(small_model: Path) -> LoweredModel:
    model = lowered_model(str(small_model), "fp16", 1)
    assert isinstance(model, LoweredModel)
    return model


@pytest.mark.parametrize("name", PHASES)
def test_a_phase_says_what_every_operator_took(lowered: LoweredModel, name: str) -> None:
    phase = measured(name, lowered)
    called = [each.name for each in lowered.program.operators if each.call]
    names = [row.name for row in phase.rows]
    if name == "operators":
        assert names == called
    if name == "references":
        assert set(names) <= {each.name for each in lowered.program.operators}
        assert len(names) == len({each.problem for each in lowered.program.operators})
    assert phase.planted == len(names)
    assert phase.peak_bytes > 2**20
    assert phase.cost.wall > 0.0
    for row in phase.rows:
        assert row.cost.wall > 0.0


def test_no_more_operators_are_judged_than_were_asked_for(lowered: LoweredModel) -> None:
    assert len(measured("operators", lowered, 2).rows) == 2


@pytest.mark.parametrize(("name", "method"), [("operators", "_compared"), ("references", "_holds")])
def test_a_check_that_sees_nothing_fails_the_benchmark(
    lowered: LoweredModel, name: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: of the planted faults."""
    right = host_checks.StepCase.compare

    def blind(case: StepCase, *_after: object) -> object:
        answer = host_checks.right_answer(case)
        return True if method == "_holds" else right(case, answer)

    monkeypatch.setattr(StepCase, method if method == "_holds" else "compare", blind)
    with pytest.raises(SystemExit, match="a planted fault is not reported"):
        measured(name, lowered)


def test_a_reference_that_is_refused_fails_the_benchmark(
    lowered: LoweredModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(case: StepCase) -> dict[str, object]:
        return dict(case.images)  # poisoned

    monkeypatch.setattr(host_checks, "right_answer", wrong)
    with pytest.raises(SystemExit, match="its own reference is refused"):
        measured("operators", lowered)


def test_the_worst_operator_comes_first() -> None:
    rest = Cost(0.0, 0.25, 1.0, 3), Cost(0.0, 0.25, 1.0, 3)
    rows = tuple(Row(name, Cost(u, 0.0, 1.0, 1), *rest) for name, u in (("a", 1.0), ("b", 2.0)))
    phase = Phase("operators", Cost(3.0, 1.0, 6.0, 14), rows, 2**30, 2)
    lines = shown([phase], 1).splitlines()
    assert lines[0].split()[0] == "operators"
    assert "1024 MiB, 2 planted faults reported" in lines[1]
    assert lines[2].split() == ["b", "2.00", "0.50", "3.00", "7", "2.00", "0.25"]
    assert len(lines) == 3


def test_more_cores_than_there_are_cannot_be_had() -> None:
    with pytest.raises(SystemExit, match="this process may use"):
        on_cores(len(os.sched_getaffinity(0)) + 1)


def test_the_command_keeps_to_its_cores(small_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "seconds.json"
    command = [
        sys.executable,
        str(SCRIPT),
        str(small_model),
        "--cores",
        "1",
        "--phase",
        "operators",
    ]
    subprocess.run([*command, "--first", "1", "--output", str(output)], check=True)
    found = json.loads(output.read_text(encoding="utf-8"))
    assert found["cores"] == 1
    (phase,) = found["phases"]
    assert [row["name"] for row in phase["rows"]]


def test_a_name_that_is_neither_file_nor_family_is_refused() -> None:
    with pytest.raises(SystemExit, match="neither a file nor a network of the zoo"):
        lowered_model("no-such-network", "fp16", 1)
