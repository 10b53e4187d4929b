"""A summary counts what a tuning store holds."""

from __future__ import annotations

from dataclasses import dataclass

from wpk.search.store.records import RunRecord
from wpk.search.store.rows import read_runs
from wpk.search.store.store import TuningStore


@dataclass(frozen=True)
class Group:
    """A group is the trials of one template under one setup.

    Attributes:
        template: Name of the template or library.
        version: Its version.
        target: Of the setup (`wpk.search.store.key.Setup`), as the next three.
        arch: See there.
        compiler: See there.
        driver: See there.
        problems: Distinct problems.
        statuses: Number of trials by status, most first.
    """

    template: str
    version: str
    target: str
    arch: str
    compiler: str
    driver: str
    problems: int
    statuses: dict[str, int]

    @property
    def trials(self) -> int:
        """Number of all trials."""
        return sum(self.statuses.values())


@dataclass(frozen=True)
class StoreSummary:
    """A summary says how much a store holds.

    Attributes:
        groups: Trials by setup and template.
        problems: Distinct problems.
        runs: All runs, the latest last, each with the number of its trials.
    """

    groups: tuple[Group, ...]
    problems: int
    runs: tuple[tuple[RunRecord, int], ...]

    @property
    def trials(self) -> int:
        """Number of all trials."""
        return sum(group.trials for group in self.groups)


_KEY = "target, arch, compiler, driver, template, version"


def summarize(store: TuningStore) -> StoreSummary:
    """Count everything, in one consistent view.

    Raises:
        StoreError: The file is damaged or cannot be read.
    """
    with store.reading() as connection:
        counted = connection.execute(
            f"SELECT {_KEY}, status, count(*) FROM trials GROUP BY {_KEY}, status"
            f" ORDER BY {_KEY}, count(*) DESC"
        ).fetchall()
        distinct = connection.execute(
            f"SELECT {_KEY}, count(DISTINCT problem) FROM trials GROUP BY {_KEY}"
        ).fetchall()
        (problems,) = connection.execute("SELECT count(*) FROM problems").fetchone()
        trials = dict(connection.execute("SELECT run, count(*) FROM trials GROUP BY run"))
        runs = tuple((run, trials.get(run.id, 0)) for run in read_runs(connection))
    statuses: dict[tuple[str, ...], dict[str, int]] = {}
    for *key, status, count in counted:
        statuses.setdefault(tuple(key), {})[status] = count
    groups = tuple(_group(tuple(key), count, statuses[tuple(key)]) for *key, count in distinct)
    return StoreSummary(groups, problems, runs)


def _group(key: tuple[str, ...], problems: int, statuses: dict[str, int]) -> Group:
    target, arch, compiler, driver, template, version = key
    return Group(template, version, target, arch, compiler, driver, problems, statuses)
