"""Work beside other work: in order, given up at the next thing that it tells."""

import threading
from concurrent.futures import CancelledError, Future

import pytest

from wpk.beside import Beside, Handover, awaited
from wpk.progress import Progress


def test_work_is_done_in_order_and_its_outcome_is_waited_for() -> None:
    done: list[int] = []

    def work(number: int) -> int:
        done.append(number)
        return 10 * number

    with Beside("test") as beside:
        found = [beside.submit(lambda _tell, number=number: work(number)) for number in range(3)]
        assert [each.result() for each in found] == [0, 10, 20]
    assert done == [0, 1, 2]


def test_what_has_begun_ends_at_the_next_thing_it_tells_and_the_rest_never_begins() -> None:
    begun = threading.Event()

    def endless(tell: Progress) -> None:
        while True:
            tell("working", 0, 1)
            begun.set()

    with Beside("test") as beside:
        first, second = beside.submit(endless), beside.submit(lambda _tell: None)
        assert begun.wait(10)
    assert isinstance(first.exception(), CancelledError)
    assert second.cancelled()


def test_an_error_is_raised_where_the_outcome_is_asked_for() -> None:
    def fails(_tell: Progress) -> None:
        raise ValueError("no")

    with Beside("test") as beside, pytest.raises(ValueError, match="no"):
        awaited(beside.submit(fails), "waiting", lambda *_told: None)


@pytest.mark.parametrize("is_there", [True, False])
def test_only_what_is_waited_for_is_told(is_there: bool) -> None:
    work: Future[int] = Future()
    told: list[str] = []

    def tell(stage: str, done: int, total: int, left: float | None = None) -> None:
        told.append(stage)
        work.set_result(1)

    if is_there:
        work.set_result(1)
    assert awaited(work, "waiting", tell) == 1
    assert told == ([] if is_there else ["waiting"])


def test_pieces_are_taken_while_others_are_made() -> None:
    handed, taken = Handover[int](), threading.Event()

    def take(_tell: Progress) -> list[int]:
        found = []
        for piece in handed:
            found.append(piece)
            taken.set()
        return found

    with Beside("test") as beside:
        found = beside.submit(take)
        with handed as hand_over:
            hand_over(1)
            assert taken.wait(10)
            hand_over(2)
        assert found.result() == [1, 2]


def test_who_takes_pieces_does_not_go_on_where_making_them_failed() -> None:
    handed = Handover[int]()

    def make() -> None:
        with handed as hand_over:
            hand_over(1)
            raise ValueError("no")

    with Beside("test") as beside:
        found = beside.submit(lambda _tell: list(handed))
        with pytest.raises(ValueError, match="no"):
            make()
        assert isinstance(found.exception(10), CancelledError)
