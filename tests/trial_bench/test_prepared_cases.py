"""A case is prepared once for the trials that follow each other, and forgotten when memory is short."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from wpk.trial_bench import prepared_cases
from wpk.trial_bench.prepared_cases import HELD_BYTES, PreparedCases, held_bytes


@dataclass(frozen=True)
class _Case:
    memory: dict[str, Any]
    result: object


@dataclass(frozen=True)
class _Prepared:
    bytes: int


class _Runner:
    def __init__(self) -> None:
        self.asked: list[object] = []

    def prepare(self, step: object, memory: dict[str, Any], result: object) -> _Prepared:
        del step, memory
        self.asked.append(result)
        return _Prepared(100)


@pytest.mark.parametrize(
    ("held", "asked"), [(200, ["a", "b"]), (199, ["a", "b", "a"]), (1, ["a", "b", "a"])]
)
def test_the_last_ones_are_held(held: int, asked: list[str]) -> None:
    runner, cases = _Runner(), PreparedCases(held)
    first, second = (_Case({}, name) for name in "ab")
    for case in (first, first, second, second, first, first):
        cases.of(case, runner, None)  # type: ignore[arg-type]
    assert runner.asked == asked


def test_cases_that_look_alike_are_each_prepared() -> None:
    runner, cases = _Runner(), PreparedCases(1000)
    found = {id(cases.of(_Case({}, "a"), runner, None)) for _ in range(3)}  # type: ignore[arg-type]
    assert len(found) == len(runner.asked) == 3


@pytest.mark.parametrize(
    ("free", "coming", "held"),
    [
        (None, 0, HELD_BYTES),
        (1 << 30, 0, HELD_BYTES),
        (64 << 30, 0, 16 << 30),
        (64 << 30, 24 << 30, 10 << 30),
        (64 << 30, 63 << 30, HELD_BYTES),
    ],
)
def test_a_machine_with_much_memory_holds_more_of_what_references_leave(
    free: int | None, coming: int, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared_cases, "free_bytes", lambda: free)
    assert held_bytes(coming) == held
