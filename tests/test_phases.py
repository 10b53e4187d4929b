"""How long each phase took: of one clock, without gaps."""

from wpk.phases import BEGINNING, Phases
from wpk.progress import silent


class Clock:
    """Seconds that a test lets pass."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_passes_between_stages_belongs_to_the_first_of_them_and_nothing_is_lost() -> None:
    clock, told = Clock(), list[tuple[object, ...]]()
    phases = Phases(lambda *what: told.append(what), clock)
    clock.now += 1
    phases("loading", 0, 2)
    clock.now += 2
    phases("loading", 2, 2)
    clock.now += 4
    phases("tuning", 0, 1, 9.0)
    clock.now += 8
    phases("loading", 0, 1)
    clock.now += 16
    assert phases.seconds() == {BEGINNING: 1, "loading": 22, "tuning": 8}
    assert told == [
        ("loading", 0, 2, None),
        ("loading", 2, 2, None),
        ("tuning", 0, 1, 9.0),
        ("loading", 0, 1, None),
    ]
    clock.now += 32
    assert phases.seconds()["loading"] == 54
    assert sum(phases.seconds().values()) == clock.now - phases.begun


def test_a_phase_within_a_stage_is_taken_from_it_also_where_it_fails() -> None:
    clock = Clock()
    phases = Phases(silent, clock)
    phases("tuning", 0, 1)
    clock.now += 1
    try:
        with phases.within("waiting"):
            clock.now += 2
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        clock.now += 4
    assert phases.seconds() == {BEGINNING: 0, "tuning": 5, "waiting": 2}
