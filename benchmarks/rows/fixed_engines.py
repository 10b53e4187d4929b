"""Engines of the partition that was fixed once, and of the one that is found today, tuned alike.

The found partition is that of a whole run of ``wpk optimize`` from an empty store: the plan of the row ``zoo.*`` of the same case,
where these sources made one, with what its store learned; else a run of its own. Then the fixed form is tuned within the
same budget, and the found form once more, briefly, both in a store of this row's: what both have in common was tried once, and is
chosen by equal knowledge. The zoo's own stores stay as they are.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from zoo.fixed import PARTITIONS, FixedForm
from zoo.lowered_forms import Decisions, LoweredForms
from zoo.operators import digest, partition_of

from rows.base import Context, RowError
from rows.tuned import plans_folder, tune
from rows.zoo import BUDGET, ZooCase
from wpk.errors import WpkError
from wpk.lowering.lowered_model import LoweredModel
from wpk.plan.plan import Plan
from wpk.plan.plan_file import read_plan
from wpk.search.loop import CacheFolder

AGAIN = "20s"
"""Of choosing kernels for the found form once more, by all that is known then."""


@dataclass(frozen=True)
class FormsHere:
    """Both forms of a network, lowered by these sources.

    Attributes:
        fixed: The form that was fixed once.
        found: The form that was found.
    """

    fixed: LoweredModel
    found: LoweredModel

    @classmethod
    def of(cls, model: Path, fixed: FixedForm, found: Sequence[str]) -> Self:
        """Lower a model in both.

        Args:
            model: Its file.
            fixed: The form that was fixed once.
            found: Keys of the sites that are decided otherwise in the found form.

        Raises:
            RowError: These passes do not make the fixed form's partition: its file is older than they are, or of another network.
        """
        forms = LoweredForms(model)
        lowered = forms.lowered(Decisions(frozenset(found)))
        return cls(lowered_fixed(fixed, forms), lowered)

    @property
    def are_same(self) -> bool:
        """Whether both have the same operators: then there is nothing to compare."""
        return Counter(self.fixed.program.problems) == Counter(self.found.program.problems)

    @property
    def found_sites(self) -> list[str]:
        """The keys of the found form that name a place of it; a search keeps others, too."""
        known = {site.key for site in self.found.sites}
        return sorted(
            key for key in self.found.source.changed if key in known or key.endswith(":*")
        )


def lowered_fixed(form: FixedForm, forms: LoweredForms) -> LoweredModel:
    """Lower a model in its fixed form, without the passes that this leaves out.

    Raises:
        RowError: It is stale: it names no pass or no place of the model any more, or has not the partition that its file says.
    """
    case = f"{form.network}.b{form.batch}"
    try:
        lowered = forms.lowered(form.decisions)
        lowered.require_sites()
    except WpkError as error:
        raise RowError(f"{error.what}; {_renew(case)}") from error
    seen = digest(partition_of(lowered.program))
    if seen != form.partition:
        raise RowError(
            f"the fixed form of {case} has partition {seen}, of {len(lowered.program.operators)} operators, here; "
            f"{PARTITIONS.name} says {form.partition}, of {form.operators}; {_renew(case)}"
        )
    return lowered


def _renew(case: str) -> str:
    return f"fix: python benchmarks/fix_partition.py --only {case}, with networks of this exporter"


class Tuner:
    """Tunes one network in one form after another, in a store of its own."""

    def __init__(self, case: ZooCase, context: Context) -> None:
        """Tune nothing yet."""
        self._case, self._context = case, replace(context, budget=BUDGET)
        self._cache = context.store / "fixed" / str(case)

    def found(self) -> Path:
        """The plan of a whole run of today's tool; whatever that learned is known to the runs behind it."""
        case, context = self._case, self._context
        ours = self._kept("found")
        if ours.is_file():
            return ours
        of_zoo = plans_folder(context) / f"{case}.plan"
        if of_zoo.is_file():
            _copy_what_is_known(case.cache(context), self._cache)
            return of_zoo
        return self._tuned("found", BUDGET)

    def fixed(self, form: FixedForm) -> Path:
        """The plan of the form that was fixed once."""
        return self._tuned(f"fixed-{form.partition}", BUDGET, form.decisions)

    def found_again(self, forms: FormsHere) -> Path:
        """The plan of the found form, by all that is known."""
        return self._tuned("again", AGAIN, Decisions(frozenset(forms.found_sites)))

    def _kept(self, name: str) -> Path:
        return plans_folder(self._context) / f"fixed.{self._case}.{name}.plan"

    def _tuned(self, name: str, budget: str, form: Decisions | None = None) -> Path:
        """A plan: of a form, or of whichever is found."""
        kept, context = self._kept(name), replace(self._context, budget=budget)
        if not kept.is_file():
            options = ["--check", "off"]  # the row compares the engines itself
            options += [] if form is None else _given(form)
            model = self._case.model(context)
            tune(self._case, model, kept, context, cache=self._cache, options=options)
        return kept


def _given(form: Decisions) -> Iterator[str]:
    """What tells ``wpk optimize`` of a form."""
    yield from ("--forms", "fixed")
    for key in sorted(form.changed):
        yield from ("--change-site", key)
    for name in sorted(form.skipped):
        yield from ("--skip-pass", name)


def plan_of(path: Path) -> Plan:
    """What a plan says."""
    return read_plan(path).plan


def _copy_what_is_known(source: Path, target: Path) -> None:
    """Copy trials and compiled kernels into a folder that does not exist yet; the source stays as it is."""
    theirs, ours = CacheFolder(source), CacheFolder(target)
    if ours.store.is_file() or not theirs.store.is_file():
        return
    target.mkdir(parents=True, exist_ok=True)
    kernels = source / ours.kernels.folder.name
    if kernels.is_dir():
        # A kernel's file is written once and never changed.
        shutil.copytree(kernels, ours.kernels.folder, copy_function=os.link, dirs_exist_ok=True)
    fresh = ours.store.with_suffix(".copy")
    with (
        closing(sqlite3.connect(f"file:{theirs.store}?mode=ro", uri=True)) as read,
        closing(sqlite3.connect(fresh)) as written,
    ):
        read.backup(written)
    os.replace(fresh, ours.store)
