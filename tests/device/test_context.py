"""A GPU's context is made current where it is not, and left alone where it is."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

import pytest

from wpk.device import context as module
from wpk.device.context import CurrentContext, DriverContext
from wpk.errors import EngineError

OURS, ANOTHERS = 5, 9


class Driver:
    """pycuda and cuda-bindings over one stack of contexts."""

    stack: ClassVar[list[int]] = []
    status = 0

    class Context:
        handle = OURS

        def push(self) -> None:
            Driver.stack.append(OURS)

        @staticmethod
        def pop() -> None:
            Driver.stack.pop()

    @staticmethod
    def cuCtxGetCurrent() -> tuple[int, int | None]:  # noqa: N802  # the driver's name
        if Driver.status:
            return Driver.status, None
        return 0, Driver.stack[-1] if Driver.stack else 0


@pytest.fixture(name="whole")
def fixture_whole(monkeypatch: pytest.MonkeyPatch) -> CurrentContext:
    monkeypatch.setattr(module, "bindings", lambda: Driver)
    monkeypatch.setattr(Driver, "stack", [])
    monkeypatch.setattr(Driver, "status", 0)
    driver: Any = Driver
    return CurrentContext(driver, Driver.Context(), "a GPU")


@pytest.mark.parametrize(
    ("before", "inside"),
    [([], [OURS]), ([OURS], [OURS]), ([ANOTHERS], [ANOTHERS, OURS]), ([OURS, ANOTHERS], None)],
)
def test_only_a_context_that_is_not_current_is_entered(
    whole: CurrentContext, before: list[int], inside: list[int] | None
) -> None:
    Driver.stack[:] = before
    with DriverContext(whole):
        assert Driver.stack == (inside or [*before, OURS])
    assert Driver.stack == before


def test_it_is_entered_where_the_driver_does_not_say(whole: CurrentContext) -> None:
    Driver.status = 1
    with DriverContext(whole):
        assert Driver.stack == [OURS]
    assert not Driver.stack


def test_entries_nest_and_leave_in_turn(whole: CurrentContext) -> None:
    one = DriverContext(whole)
    with one, whole, one:
        assert Driver.stack == [OURS, OURS]
        Driver.stack.append(ANOTHERS)
        with one:
            assert Driver.stack[-1] == OURS
        assert Driver.stack.pop() == ANOTHERS
    assert not Driver.stack


def test_other_threads_wait(whole: CurrentContext) -> None:
    Driver.stack[:] = [OURS]
    entered = threading.Event()

    def enter() -> None:
        with whole:
            entered.set()

    thread = threading.Thread(target=enter)
    with DriverContext(whole):
        thread.start()
        assert not entered.wait(0.05)
    thread.join(10)
    assert entered.is_set()


def test_one_that_was_closed_lets_nobody_in_and_keeps_nobody_out(whole: CurrentContext) -> None:
    Driver.stack[:] = [OURS]
    whole.close()
    with pytest.raises(EngineError, match="a GPU was closed"), DriverContext(whole):
        pass
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(whole.lock.acquire(blocking=False)))
    thread.start()
    thread.join(10)
    assert seen == [True]
    assert Driver.stack == [OURS]
