"""Pairs of choices that meet: what is slower without one of two merges may be faster without both."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations

from wpk.graph_passes import every_site, pass_of
from wpk.search.forms.form import Form

MOST_PAIRS = 16
"""Pairs that are lowered in a round, those first that lose least one by one."""


def neighbours(form: Form, keys: Collection[str]) -> list[tuple[str, str]]:
    """Return the pairs of classes that decide over a node in common at some place, in the order of the keys."""
    nodes = {
        key: {node for site in form.sites_of(key) for node in site.nodes}
        for key in keys
        if key != every_site(pass_of(key))
    }
    return [(a, b) for a, b in combinations(nodes, 2) if not nodes[a].isdisjoint(nodes[b])]
