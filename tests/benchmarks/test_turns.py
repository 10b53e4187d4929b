"""Engines of several packages take turns, each in a process of its own. The packages here only pretend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from rows import turns
from rows.base import RowError
from rows.turns import Side, take_turns
from subjects.earlier import first_on_path
from support.commits.pretended_wpk import pretend_wpk


@pytest.fixture(name="inputs")
def fixture_inputs(tmp_path: Path) -> Path:
    np.savez(tmp_path / "inputs.npz", x=np.arange(3.0))
    return tmp_path / "inputs.npz"


@pytest.fixture(name="side")
def fixture_side(tmp_path: Path) -> Callable[..., Side]:
    def side(name: str, **given: float) -> Side:
        plan = tmp_path / f"{name}.plan"
        plan.write_text("a plan")
        return Side(name, plan, pretend_wpk(tmp_path / name, **given))  # type: ignore[arg-type]

    return side


def test_each_is_timed_by_its_own_package_while_the_other_rests(
    tmp_path: Path, inputs: Path, side: Callable[..., Side]
) -> None:
    sides = [side("old", cost=1.2e-4, factor=2.0), side("new", cost=1e-4, factor=2.5)]
    load = take_turns(sides, inputs, tmp_path, turns=6)
    assert {n: list(s) for n, s in load.seconds.items()} == {
        "old": [pytest.approx(1.2e-4)] * 6,
        "new": [pytest.approx(1e-4)] * 6,
    }
    assert load.outputs["old"]["y"].tolist() == [0.0, 2.0, 4.0]
    assert load.outputs["new"]["y"].tolist() == [0.0, 2.5, 5.0]
    told = (tmp_path / "turns.log").read_text().splitlines()
    assert len(told) == 2 * 2 * (3 + 6)  # three looks at how long a start takes
    for begin, end in zip(told[::2], told[1::2], strict=True):
        assert begin.removesuffix(" begins") == end.removesuffix(" ends")


def test_every_order_of_the_sides_comes_as_often(
    tmp_path: Path, inputs: Path, side: Callable[..., Side]
) -> None:
    take_turns([side("a"), side("b"), side("c")], inputs, tmp_path, turns=12)
    told = [line[0] for line in (tmp_path / "turns.log").read_text().splitlines()[::2]]
    taken = Counter(batch for batch in zip(*[iter(told[9:])] * 3, strict=True))
    assert taken == Counter(2 * list(permutations("abc")))


def test_an_engine_that_dies_is_an_error_that_says_which_and_why(
    tmp_path: Path, inputs: Path, side: Callable[..., Side]
) -> None:
    sides = [side("healthy"), side("mortal", lives=100)]
    with pytest.raises(RowError, match=r"(?s)'mortal' ended with exit code 1.*of mortal failed"):
        take_turns(sides, inputs, tmp_path)


def test_an_engine_that_does_not_load_is_one_too(
    tmp_path: Path, inputs: Path, side: Callable[..., Side]
) -> None:
    missing = side("missing")
    missing.plan.unlink()
    with pytest.raises(RowError, match=r"(?s)'missing' ended with exit code 1.*FileNotFoundError"):
        take_turns([missing], inputs, tmp_path)


def test_an_engine_of_another_package_than_asked_for_is_not_timed(
    tmp_path: Path, inputs: Path, side: Callable[..., Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, other = side("asked"), tmp_path / "other"
    pretend_wpk(other)
    monkeypatch.setattr(turns, "first_on_path", lambda _package: first_on_path(other))
    with pytest.raises(
        RowError, match=r"'asked' runs the wpk of .*/other/wpk, not of .*/asked/wpk"
    ):
        take_turns([asked], inputs, tmp_path)
