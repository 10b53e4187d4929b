"""What the tuning store and the cache of kernels hold, in words."""

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from wpk.report import Block, Facts, Table, byte_size, visible
from wpk.search.loop import KEEP_BYTES, CacheFolder
from wpk.search.store import Group, RunRecord, TuningStore, summarize

RUNS_SHOWN = 20
"""The latest runs are listed, the others counted."""

_MODEL = 32


def cache_text(places: CacheFolder) -> list[Block]:
    """Return tables of trials and runs, and sizes on the disk; create no file that is not there.

    Raises:
        StoreError: The store cannot be read.
        CompileError: The cache of kernels cannot be read.
    """
    kept = places.compiled()
    size, for_cpu = (
        sum(each.bytes for each in kept),
        sum(each.path.suffix == ".so" for each in kept),
    )
    kernels = [
        (
            "kernels",
            f"{len(kept) - for_cpu} for GPUs, {for_cpu} for the CPU, {byte_size(size)}, in {places.path}",
        ),
        ("limit", f"none by itself; wpk cache prune leaves the latest {byte_size(KEEP_BYTES)}"),
    ]
    if not places.store.is_file():
        return [Facts([("trials", f"none: {places.store} does not exist"), *kernels])]
    with TuningStore(places.store) as store:
        held = summarize(store)
    trials = (
        f"{held.trials} of {held.problems} problems in {len(held.runs)} runs, "
        f"{byte_size(_bytes(places.store))}, in {places.store}"
    )
    tables = [_groups(held.groups)] if held.groups else []
    tables += [_runs(held.runs)] if held.runs else []
    return [*tables, Facts([("trials", trials), *kernels])]


def clearable(places: CacheFolder, target: str | None, template: str | None) -> str:
    """Say in words what clearing would remove; empty if that is nothing.

    Args:
        places: The caches.
        target: Only trials of it; None for all, and the kernels with them.
        template: Only trials of this template.
    """
    words = []
    if places.store.is_file():
        with TuningStore(places.store) as store:
            groups = [
                group
                for group in summarize(store).groups
                if target in (None, group.target) and template in (None, group.template)
            ]
        if groups:
            makers = ", ".join(sorted({group.template for group in groups}))
            targets = ", ".join(sorted({group.target for group in groups}))
            words.append(f"{sum(g.trials for g in groups)} trials of {makers} on {targets}")
    usage = places.kernels.usage()
    if usage.kernels and target is None and template is None:
        words.append(f"{usage.kernels} compiled kernels ({byte_size(usage.bytes)})")
    return " and ".join(words)


def _groups(groups: Sequence[Group]) -> Block:
    statuses = list(dict.fromkeys(status for group in groups for status in group.statuses))
    header = ["template", "version", "target", "compiler", "driver", "problems", "trials"]
    rows: list[list[object]] = [
        [
            group.template,
            group.version,
            f"{group.target} ({group.arch})",
            group.compiler,
            group.driver,
            group.problems,
            group.trials,
            *(group.statuses.get(status, 0) for status in statuses),
        ]
        for group in groups
    ]
    total = sum((Counter(group.statuses) for group in groups), Counter())
    sums = [sum(total.values()), *(total[status] for status in statuses)]
    rows.append(["all", "", "", "", "", "", *sums])
    return Table([*header, *statuses], rows, ("version", "driver", "compiler", "problems"))


def _runs(runs: Sequence[tuple[RunRecord, int]]) -> Block:
    header = ["run", "started (UTC)", "state", "model", "target", "precision", "searcher", "trials"]
    rows = [_run(run, trials) for run, trials in runs[-RUNS_SHOWN:]]
    hidden = len(runs) - RUNS_SHOWN
    title = f"runs ({hidden} earlier ones are not listed)" if hidden > 0 else "runs"
    return Table(header, rows, ("started (UTC)", "precision", "target", "searcher"), title)


def _run(run: RunRecord, trials: int) -> list[object]:
    started = time.strftime("%Y-%m-%d %H:%M", time.gmtime(run.started))
    asked, words = run.request, ("", "", "", "")
    if asked is not None:
        searched = f"{asked.search.search}, effort {asked.search.effort}"
        words = (visible(asked.model, _MODEL), asked.build.target, asked.build.precision, searched)
    return [run.id, started, run.state.value, *words, trials]


def _bytes(store: Path) -> int:
    """Return the bytes of the file and of those that SQLite keeps beside it."""
    files = [store, *(store.with_name(f"{store.name}{end}") for end in ("-wal", "-shm"))]
    return sum(file.stat().st_size for file in files if file.is_file())
