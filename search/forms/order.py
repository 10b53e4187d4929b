"""The order in which choices are looked at: those first that cost least to look at, and decide over most of what can be saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import inf

from wpk.dtypes import Precision
from wpk.graph_passes import every_site, pass_groups, pass_of
from wpk.lowering.lowered_model import LoweredModel
from wpk.problems import Problem
from wpk.search.forms.form import Form
from wpk.search.forms.times import Estimate

FUSION = "fuse-operators"
"""The pass that merges consecutive subsets of nodes into operators."""


def in_order(lowered: LoweredModel, form: Form, headroom: Estimate) -> list[str]:
    """Return the keys of a form's sites, those of later passes first, since fewer passes run again for them.

    Of one group of passes whole passes come first, then classes by the headroom of what they decide over; before others
    sites whose nodes are no operator's any more, since a later pass replaced them. A pass of one class is that class.
    """
    weight = _weight(lowered, form, headroom)
    classes = Counter(pass_of(key) for key in form.sites)
    whole = [every_site(name) for name, count in classes.items() if count > 1 and name != FUSION]
    keys = whole + sorted(form.sites, key=weight, reverse=True)
    place = _places()
    return sorted(keys, key=lambda key: -place(key))


def kinds_in_order(lowered: LoweredModel, form: Form, headroom: Estimate) -> list[tuple[str, ...]]:
    """Return the keys of a form's sites by kind: what a pass does there, in the same words, whatever the sizes are.

    Kinds of later passes come first, since fewer passes run again for them; of one group those with most headroom.
    """
    weight = _weight(lowered, form, headroom)
    kinds: dict[tuple[str, str], list[str]] = {}
    for key, sites in form.sites.items():
        kinds.setdefault((pass_of(key), sites[0].words), []).append(key)
    place = _places()

    def turn(keys: Sequence[str]) -> tuple[int, float]:
        return -place(keys[0]), -sum(map(weight, keys))

    return sorted(map(tuple, kinds.values()), key=turn)


def _places() -> Callable[[str], int]:
    """The group of passes that a key's is in; behind all groups what lowering decides, for which no pass runs again."""
    groups = pass_groups(Precision.FP32)
    places = {each.name: place for place, group in enumerate(groups) for each in group}
    return lambda key: places.get(pass_of(key), len(groups))


def _weight(lowered: LoweredModel, form: Form, headroom: Estimate) -> Callable[[str], float]:
    """The headroom of all that a class decides over; no end of it where its nodes are no operator's."""
    holders = {n: o.problem for o in lowered.program.operators for n in o.nodes}

    def weight(key: str) -> float:
        places = [[holders.get(node) for node in site.nodes] for site in form.sites[key]]
        known = [{p for p in problems if p is not None} for problems in places]
        return sum(_seconds(problems, headroom) if problems else inf for problems in known)

    return weight


def _seconds(problems: set[Problem], headroom: Estimate) -> float:
    return sum(map(headroom, problems))
