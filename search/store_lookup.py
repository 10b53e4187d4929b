"""Look up what is known of a problem, and say in words why it is a hit or a miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wpk.search.store import TuningStore
from wpk.search.store_key import StoreKey
from wpk.search.store_record import Stage, TrialRecord
from wpk.trial import Regime, Status, Trial

_DIGEST_SHOWN = 12


@dataclass(frozen=True)
class Known:
    """All trials of one schedule under one key, taken together.

    A schedule that failed once has failed, however often it ran: a kernel that is right only
    sometimes must not win.

    Attributes:
        trial: What the search measured, over all runs; the final measurement where it has no other.
        final: What the latest run that compared finalists measured; None where none did.
        final_run: That run; empty where none did.
        final_rounds: How many times it compared them.
        at: When the first of them was stored, in seconds since the epoch.
        searcher: Who proposed the schedule first; empty where that is not known.
    """

    trial: Trial
    final: Trial | None = None
    final_run: str = ""
    final_rounds: int = 0
    at: float = 0.0
    searcher: str = ""


@dataclass(frozen=True)
class Lookup:
    """The answer of the store.

    Attributes:
        known: One a schedule, in the order in which they were first stored; empty in a miss.
        why: Why it is a hit or a miss, in words, beginning with which.
    """

    known: tuple[Known, ...]
    why: str

    @property
    def hit(self) -> bool:
        """Whether anything is known."""
        return bool(self.known)


def look_up(store: TuningStore, key: StoreKey, regime: Regime) -> Lookup:
    """What the store knows under a key in a regime.

    Failures count in every regime, and alone make a hit: what failed need not be tried again.

    Raises:
        StoreError: The file is damaged or cannot be read.
    """
    records = store.trials(key)
    usable = [each for each in records if each.regime in (None, regime)]
    known = tuple(_pool(group) for group in _by_schedule(usable))
    if known:
        return Lookup(known, _why_hit(key, known))
    if records:
        measured = records[0].regime
        return Lookup((), f"miss: {key.template} was measured {measured} only, asked is {regime}")
    return Lookup((), _why_miss(store, key))


def _by_schedule(records: Sequence[TrialRecord]) -> list[list[TrialRecord]]:
    groups: dict[tuple[tuple[str, int], ...], list[TrialRecord]] = {}
    for record in records:
        groups.setdefault(record.schedule, []).append(record)
    return list(groups.values())


def _pool(records: Sequence[TrialRecord]) -> Known:
    first = records[0]
    failed = [each for each in records if each.status is not Status.OK]
    if failed:
        last = failed[-1]
        trial = Trial(last.schedule, last.status, last.seconds, last.detail)
        return Known(trial, at=first.at, searcher=first.searcher)
    finals = [each for each in records if each.stage is Stage.FINAL]
    searched = [each for each in records if each.stage is Stage.SEARCH]
    if not finals:
        return Known(_joined(searched), at=first.at, searcher=first.searcher)
    run = finals[-1].run
    latest = [each for each in finals if each.run == run]
    searched_first = _joined(searched or finals)
    return Known(searched_first, _joined(latest), run, len(latest), first.at, first.searcher)


def _joined(records: Sequence[TrialRecord]) -> Trial:
    seconds = tuple(each for record in records for each in record.seconds)
    return Trial(records[0].schedule, Status.OK, seconds)


def _why_hit(key: StoreKey, known: Sequence[Known]) -> str:
    costs = [(each.final or each.trial).cost for each in known]
    ok = sum(each.trial.status is Status.OK for each in known)
    best = f", best {min(costs) * 1e6:.2f} us" if ok else ""
    return (
        f"hit: {_count(len(known), 'schedule')} of {key.template} version {key.version} on "
        f"{key.setup.target}, {ok} ok{best}"
    )


def _why_miss(store: TuningStore, key: StoreKey) -> str:
    """The parts of the key that differ from the nearest trials of the same problem."""
    with store.reading() as connection:
        rows = connection.execute(
            "SELECT template, target, arch, version, compiler, driver, count(*) FROM trials"
            " WHERE problem = ? GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY max(number) DESC",
            (key.digest,),
        ).fetchall()
        (problems,) = connection.execute("SELECT count(*) FROM problems").fetchone()
    if not rows:
        shown = key.digest[:_DIGEST_SHOWN]
        return f"miss: no trial of problem {shown} among {_count(problems, 'problem')}"
    same = [row for row in rows if row[0] == key.template]
    if not same:
        others = ", ".join(sorted({row[0] for row in rows}))
        return f"miss: the problem is known for {others}, not for {key.template}"
    _, *stored, trials = min(same, key=lambda row: len(_differences(key, row[1:-1])))
    parts = "; ".join(_differences(key, stored))
    return f"miss: {_count(trials, 'trial')} of {key.template} with another {parts}"


def _differences(key: StoreKey, stored: Sequence[str]) -> list[str]:
    setup = key.setup
    names = ("target", "architecture", "template version", "compiler", "driver")
    asked = (setup.target, setup.arch, key.version, setup.compiler, setup.driver)
    return [
        f"{name} (stored {there}, now {here})"
        for name, there, here in zip(names, stored, asked, strict=True)
        if there != here
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
