"""What `optimize` would do, and what it was asked to do before."""

from pathlib import Path
from typing import Any

from wpk.dtypes import Precision
from wpk.options import split_options
from wpk.pipeline.job import Job
from wpk.plan import Paths
from wpk.progress import Progress, silent
from wpk.schedules import TEMPLATES
from wpk.search.loop import CacheFolder, Preview, choose_target, preview_of, runs
from wpk.search.models import check_skips, find_pruning


def preview(
    model: Paths, *, cache: Paths | None = None, progress: Progress = silent, **options: Any
) -> Preview:
    """What `optimize` would do with the same arguments; compiles, measures and writes nothing.

    Raises:
        WpkError: With what is wrong and what to do, as `optimize` would.
    """
    build, search = split_options(options)
    check_skips(build.skip_templates, TEMPLATES)
    target = choose_target(build.target, Precision(build.precision))
    job = Job(Path(model), build, target, CacheFolder(cache), progress)
    tuning = job.tuning(search, None)
    lowered, skipped = job.lower(), build.skip_templates
    lowered.require_sites()
    asked = lowered.all_operators, target, tuning, search.operators, progress
    return preview_of(*asked, skip=skipped, pruning=find_pruning(search.prune))


def recall(run: str, cache: Paths | None = None) -> dict[str, Any]:
    """What an earlier run was asked to do, as keyword arguments of `optimize`.

    Raises:
        WpkError: There is no such run in the tuning store; names the latest.
    """
    return runs.recall(CacheFolder(cache).store, run)
