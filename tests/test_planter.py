"""Faults are planted where they are said to be, or nowhere; and no kernel names a point for nothing."""

import re
from pathlib import Path

import pytest
from support.faults.planter import (
    Edit,
    PlantError,
    before,
    behind,
    change,
    drop,
    move,
    put,
    rewrite,
    together,
)

ROOT = Path(__file__).parents[1]
TEXT = """
    wait(a); // @waits, and says why
    if (x < 3 && y) // @guard
        stop(x,
            y);
    // @sum: of all
    total += f(1,
        2);
    loop { // @walk
"""


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().split("\n")]


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (drop("waits"), [";", *lines(TEXT)[1:]]),
        (put("sum", "total = 0;"), [*lines(TEXT)[:4], "total = 0;", lines(TEXT)[7]]),
        (change("guard", "< 3 ", "< 4 "), ["if (x < 4 && y)", "stop(x,", "y);"]),
        (change("sum", "2", "3"), ["total += f(1,", "3);"]),
        (before("waits", "first();"), ["first();", "wait(a);"]),
        (behind("waits", "second();"), ["wait(a);", "second();"]),
        (move("sum", before="waits"), ["total += f(1,", "2);", "wait(a);"]),
        (together(drop("waits"), change("walk", "loop", "once")), ["once {"]),
    ],
)
def test_an_edit_changes_its_statement_and_nothing_else(edit: Edit, expected: list[str]) -> None:
    said = lines(edit(TEXT))
    assert " ".join(expected) in " ".join(said)
    kept = {line for line in lines(TEXT) if "@" not in line} - {
        "stop(x,",
        "y);",
        "total += f(1,",
        "2);",
    }
    assert kept <= set(said)


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (drop("wait"), "no point 'wait' in the text"),
        (change("waits", "b", "c"), "'waits': 'b' is there 0 times"),
        (change("guard", "x", "z"), "'guard': 'x' is there 2 times"),
        (rewrite("f(3)", "f(4)"), "the module: 'f\\(3\\)' is there 0 times"),
        (move("sum", before="nothing"), "no point 'nothing'"),
    ],
)
def test_what_has_no_place_is_no_fault(edit: Edit, words: str) -> None:
    with pytest.raises(PlantError, match=words):
        edit(TEXT)


def test_layout_and_comments_do_not_decide_where_a_fault_is_planted() -> None:
    text = "a = f(\n    x,  # the first\n    y\n)\nb = f(y, x)\n"
    assert rewrite("f(x, y)", "f(y)")(text) == "a = f(y)\nb = f(y, x)\n"


def test_every_point_is_named_by_a_test() -> None:
    texts = [*(ROOT / "wpk").rglob("*.cuh"), *(ROOT / "tests").rglob("*.cu")]
    points = {
        point
        for path in texts
        for point in re.findall(r"// @(\w+)", path.read_text(encoding="utf-8"))
    }
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("*.py"))
    assert points
    assert {point for point in points if f'"{point}"' not in tests} == set()
