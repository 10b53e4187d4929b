"""A lookup finds what is known of a problem, and says in words why it is a hit or a miss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wpk.candidate import Candidate, Configuration
from wpk.search.store.key import StoreKey
from wpk.search.store.records import Stage, TrialRecord
from wpk.search.store.store import TuningStore
from wpk.trial import Regime, Status, Trial

_DIGEST_SHOWN = 12


@dataclass(frozen=True)
class History:
    """A history is all trials of one candidate under one key, as one.

    A candidate that failed once has failed, however often it ran: a kernel that is right only
    sometimes must not win.

    Attributes:
        trial: What the search measured, over all runs; the final measurement where it has no other.
        final: What the latest run that compared finalists measured; None where none did.
        final_run: That run; empty where none did.
        final_rounds: How many times it compared them.
        at: When the first of them was stored, in seconds since the epoch.
    """

    trial: Trial
    final: Trial | None = None
    final_run: str = ""
    final_rounds: int = 0
    at: float = 0.0


@dataclass(frozen=True)
class Lookup:
    """A lookup is the answer of the store.

    Attributes:
        histories: One a candidate, in the order in which they were first stored; empty in a miss.
        why: Why it is a hit or a miss, in words, beginning with which.
    """

    histories: tuple[History, ...]
    why: str


def look_up(store: TuningStore, key: StoreKey, regime: Regime) -> Lookup:
    """Return what the store knows under a key in a regime.

    Failures count in every regime, and alone make a hit: what failed need not be tried again.

    Raises:
        StoreError: The file is damaged or cannot be read.
    """
    records = store.trials(key)
    usable = [each for each in records if each.regime in (None, regime)]
    histories = tuple(
        _history(Candidate(key.maker, configuration), group)
        for configuration, group in _by_configuration(usable).items()
    )
    if histories:
        return Lookup(histories, _why_hit(key, histories))
    if records:
        measured = records[0].regime
        return Lookup((), f"miss: {key.maker.name} was measured {measured} only, asked is {regime}")
    return Lookup((), _why_miss(store, key))


def _by_configuration(records: Sequence[TrialRecord]) -> dict[Configuration, list[TrialRecord]]:
    groups: dict[Configuration, list[TrialRecord]] = {}
    for record in records:
        groups.setdefault(record.schedule, []).append(record)
    return groups


def _history(candidate: Candidate, records: Sequence[TrialRecord]) -> History:
    first = records[0]
    failed = [each for each in records if each.status is not Status.OK]
    if failed:
        last = failed[-1]
        trial = Trial(candidate, last.status, last.seconds, last.detail, first.searcher)
        return History(trial, at=first.at)

    def joined(group: Sequence[TrialRecord]) -> Trial:
        seconds = tuple(each for record in group for each in record.seconds)
        return Trial(candidate, Status.OK, seconds, proposer=first.searcher)

    finals = [each for each in records if each.stage is Stage.FINAL]
    searched = [each for each in records if each.stage is Stage.SEARCH]
    if not finals:
        return History(joined(searched), at=first.at)
    run = finals[-1].run
    latest = [each for each in finals if each.run == run]
    return History(joined(searched or finals), joined(latest), run, len(latest), first.at)


def _why_hit(key: StoreKey, histories: Sequence[History]) -> str:
    costs = [(each.final or each.trial).cost for each in histories]
    ok = sum(each.trial.ran for each in histories)
    best = f", best {min(costs) * 1e6:.2f} us" if ok else ""
    return (
        f"hit: {_count(len(histories), 'schedule')} of {key.maker.name} version {key.maker.version} on "
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
    same = [row for row in rows if row[0] == key.maker.name]
    if not same:
        others = ", ".join(sorted({row[0] for row in rows}))
        return f"miss: the problem is known for {others}, not for {key.maker.name}"
    _, *stored, trials = min(same, key=lambda row: len(_differences(key, row[1:-1])))
    parts = "; ".join(_differences(key, stored))
    return f"miss: {_count(trials, 'trial')} of {key.maker.name} with another {parts}"


def _differences(key: StoreKey, stored: Sequence[str]) -> list[str]:
    setup = key.setup
    names = ("target", "architecture", "template version", "compiler", "driver")
    asked = (setup.target, setup.arch, key.maker.version, setup.compiler, setup.driver)
    return [
        f"{name} (stored {there}, now {here})"
        for name, there, here in zip(names, stored, asked, strict=True)
        if there != here
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
