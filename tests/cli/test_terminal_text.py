"""What names from models, plans and other files can do to a terminal: nothing."""

import logging
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.plans.forged_plans import members, rewrite

from wpk.cli.say import PlainFormatter
from wpk.engine import read_arrays, write_arrays
from wpk.report import format_table
from wpk.report.progress_line import ProgressLine

EVIL = "\x1b[2J\x1b]0;owned\x07\u202egnp.\x9b31m"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
JSON_EVIL = rb"\u001b[2J\u001b]0;owned\u0007\u202egnp.\u009b31m"


@pytest.fixture(name="evil_plan")
def fixture_evil_plan(plan: Path, tmp_path: Path) -> Path:
    """A plan whose free texts steer a terminal."""
    contents = members(plan)
    text = contents["plan.json"]
    for field in (b"target", b"model", b"checked_on", b"wpk", b"name", b"detail", b"compiler"):
        text = re.sub(
            rb'"' + field + rb'": "(?!x"|y")([^"]*)"',
            lambda found: found.group(0)[:-1] + JSON_EVIL + b'"',
            text,
        )
    contents["plan.json"] = text
    path = tmp_path / "evil.plan"
    rewrite(path, contents)
    return path


@pytest.mark.parametrize(
    "command", [("inspect",), ("inspect", "--json"), ("run", "--device", "cpu")]
)
def test_no_field_of_a_plan_reaches_the_terminal_raw(
    wpk: Callable[..., object], evil_plan: Path, command: tuple[str, ...]
) -> None:
    result = wpk(command[0], evil_plan, *command[1:])
    assert RAW.search(result.out) is None  # type: ignore[attr-defined]
    assert RAW.search(result.err) is None  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "field",
    ["target", "wpk", "arch", "model", "detail", "checked_on", "bound_by", "compiler", "note"],
)
def test_each_text_of_a_plan_alone_is_printed_plainly(
    wpk: Callable[..., object], plan: Path, tmp_path: Path, field: str
) -> None:
    contents = members(plan)
    contents["plan.json"] = re.sub(
        rb'("' + field.encode() + rb'": ")', rb"\g<1>" + JSON_EVIL.replace(b"\\", rb"\\"),
        contents["plan.json"], count=1,
    )  # fmt: skip
    path = tmp_path / "evil.plan"
    rewrite(path, contents)
    result = wpk("inspect", path)
    assert RAW.search(result.out + result.err) is None  # type: ignore[attr-defined]


def test_an_operator_that_is_not_there_is_named_plainly(
    refused: Callable[..., str], plan: Path
) -> None:
    assert RAW.search(refused("inspect", plan, "--source", EVIL)) is None


def test_a_target_file_with_evil_keys_is_refused_plainly(
    refused: Callable[..., str], model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"base": "h200", "name": "n", "\\u001b[31m\\u202e": 1}')
    message = refused("optimize", model, "-o", tmp_path / "o.plan", "--target", path)
    assert RAW.search(message) is None
    assert r"\x1b" in message


def test_a_cell_makes_no_row_of_its_own() -> None:
    assert format_table(["a"], [["one\ntwo\x1b[2J"]]).split("\n") == ["a", r"one\ntwo\x1b[2J"]


def test_notes_and_logs_are_plain(capsys: pytest.CaptureFixture[str]) -> None:
    progress = ProgressLine()
    progress.note(EVIL)
    progress(EVIL, 0, 2)
    assert RAW.search(capsys.readouterr().err) is None
    record = logging.LogRecord("wpk", logging.WARNING, "f", 1, "%s is damaged", (EVIL,), None)
    assert RAW.search(PlainFormatter("%(message)s").format(record)) is None


@pytest.mark.parametrize("name", ["file", "allow_pickle", "a/b", "../x", "y\n"])
def test_outputs_of_any_name_are_written_and_read(tmp_path: Path, name: str) -> None:
    arrays = {name: np.arange(3, dtype=np.float32), "y": np.zeros((2, 2), np.int64)}
    write_arrays(tmp_path / "y.npz", arrays)
    found = read_arrays(tmp_path / "y.npz")
    assert found.keys() == arrays.keys()
    for key, array in arrays.items():
        np.testing.assert_array_equal(found[key], array)
