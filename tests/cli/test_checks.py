"""What optimize and verify check, on whose inputs, and what they say of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.networks.silent_models import AMPLIFIES, DEAD_HEAD, save_silent

from wpk.report.plans.check_words import PROOF_WORDS, QUICK_WORDS

Command = Callable[..., Any]


@pytest.fixture
def given(tmp_path: Path) -> Callable[..., Path]:
    """Writes inputs of the small model."""

    def write(name: str = "x.npz", batch: int = 5, **arrays: np.ndarray) -> Path:
        drawn = np.random.default_rng(9).standard_normal((batch, 8), np.float32)
        np.savez(tmp_path / name, **(arrays or {"x": drawn}))
        return tmp_path / name

    return write


def test_verify_checks_on_given_inputs_beside_drawn_ones(
    wpk: Command, model: Path, plan: Path, given: Callable[..., Path]
) -> None:
    files = ["--inputs", given("a.npz"), "--inputs", given("b.npz", batch=1)]
    result = wpk("verify", plan, model, *files)
    assert result.code == 0, result.err
    whole = [line.split("  ")[0] for line in result.out.splitlines() if "ONNX Runtime" in line]
    assert whole[-2:] == ["ONNX Runtime, given inputs 1", "ONNX Runtime, given inputs 2"]
    operators = [line for line in result.out.splitlines() if " of the tolerance" in line]
    names = {line.split()[0] for line in operators}
    assert len(operators) == 5 * len(names)  # at three sizes, and on what each file holds


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"z": np.zeros((1, 8), np.float32)}, "inputs do not fit the plan"),
        ({"x": np.zeros((1, 9), np.float32)}, "'x' has shape"),
        ({"x": np.zeros((1, 8))}, "input 'x' has type float64"),
    ],
)
def test_inputs_that_do_not_fit_are_refused_before_anything_is_compiled(
    wpk: Command,
    refused: Callable[..., str],
    model: Path,
    plan: Path,
    given: Callable[..., Path],
    arrays: dict[str, np.ndarray],
    words: str,
    tmp_path: Path,
) -> None:
    file = given(**arrays)
    assert words in refused("run", plan, "--inputs", file, "--device", "cpu")
    assert words in refused("verify", plan, model, "--inputs", file)
    target = ["--target", "h200"]
    output = tmp_path / "m.plan"
    result = wpk("optimize", model, "-o", output, *target, "--inputs", file)
    assert result.code == 1
    assert words in result.err
    assert "compiling" not in result.err
    assert not output.exists()


def test_an_unreadable_file_is_refused(
    refused: Callable[..., str], model: Path, plan: Path, tmp_path: Path
) -> None:
    gone = tmp_path / "gone.npz"
    assert "gone.npz cannot be read" in refused("verify", plan, model, "--inputs", gone)
    command = ["optimize", model, "-o", tmp_path / "m.plan", "--target", "h200", "--inputs", gone]
    assert "gone.npz cannot be read" in refused(*command)


def test_optimize_checks_on_given_inputs_and_says_how_thoroughly(
    wpk: Command, model: Path, given: Callable[..., Path], tmp_path: Path
) -> None:
    path, lock = tmp_path / "m.plan", tmp_path / "m.lock"
    command = ["optimize", model, "-o", path, "--target", "h200", "--check", "quick"]
    result = wpk(*command, "--inputs", given(), "--lock", lock)
    assert result.code == 0, result.err
    assert QUICK_WORDS in result.out
    data = json.loads(wpk("inspect", path, "--json").out)
    assert data["check_mode"] == "quick"
    assert [check["name"] for check in data["checks"]] == [
        f"{what}, {inputs}"
        for what in ("graph passes", "ONNX Runtime")
        for inputs in ("seed 0, batch 1", "given inputs 1")
    ]
    again = tmp_path / "again.plan"
    assert wpk("optimize", model, "-o", again, "--from-lock", lock, "--check", "off").code == 0
    assert again.read_bytes() == path.read_bytes()


def test_given_inputs_with_checks_off_are_refused(
    refused: Callable[..., str], model: Path, given: Callable[..., Path], tmp_path: Path
) -> None:
    command = ["optimize", model, "-o", tmp_path / "m.plan", "--target", "h200"]
    assert "nothing is checked" in refused(*command, "--check", "off", "--inputs", given())


def test_verify_quickly_says_what_was_left_out(wpk: Command, model: Path, plan: Path) -> None:
    result = wpk("verify", plan, model, "--check", "quick")
    assert result.code == 0
    assert QUICK_WORDS in result.out
    assert [line.split("  ")[0] for line in result.out.splitlines() if "ONNX Ru" in line] == [
        "ONNX Runtime, seed 0, batch 1"
    ]
    assert "batch 3" in wpk("verify", plan, model).out
    assert "seed 1" in wpk("verify", plan, model, "--check", "quick", "--seeds", 2).out


def test_a_tolerance_decides_and_is_printed(
    wpk: Command, refused: Callable[..., str], model: Path, other_model: Path, plan: Path
) -> None:
    result = wpk("verify", plan, model, "--rtol", "1e-4", "--atol", "1e-6")
    assert result.code == 0
    assert "0 of 5 elements beyond rtol 0.0001, atol 1e-06" in result.out
    message = refused("verify", plan, model, "--rtol", "1e-12", code=3)
    assert "elements beyond rtol 1e-12, atol 0" in message
    loose = wpk("verify", plan, other_model, "--atol", "2")
    assert loose.code == 3  # operators alone are held to their own bounds
    assert "0 of 5 elements beyond rtol 0, atol 2" in loose.out


@pytest.mark.parametrize("option", [["--rtol", "-1"], ["--atol", "nan"], ["--atol", "inf"]])
def test_a_tolerance_is_a_number_from_zero_up(
    wpk: Command, model: Path, plan: Path, option: list[str]
) -> None:
    result = wpk("verify", plan, model, *option)
    assert result.code == 2
    assert "is not a number from 0 up" in result.err


@pytest.mark.parametrize(
    ("text", "why"),
    [(AMPLIFIES, "the model amplifies rounding"), (DEAD_HEAD, "it should be zero for all inputs")],
)
def test_an_inconclusive_check_is_shown_and_stops_nothing(
    wpk: Command, text: str, why: str, tmp_path: Path
) -> None:
    model = save_silent(tmp_path / "silent.onnx", text)
    plan = model.with_suffix(".plan")
    reports = [tmp_path / f"report{suffix}" for suffix in (".html", ".md", ".json")]
    result = wpk("optimize", model, "-o", plan, "--target", "h200", "--report", reports[0])
    assert result.code == 0, result.err
    for path in reports[1:]:
        assert wpk("report", plan, "-o", path).code == 0
    again = wpk("verify", plan, model)
    assert again.code == 0
    for out in (result.out, again.out, *(path.read_text() for path in reports)):
        assert why in out.replace("\\", "")
        assert "inconclusive" in out
    for out in (result.out, again.out):
        assert PROOF_WORDS in out
        assert "ok     ONNX Runtime" not in out
