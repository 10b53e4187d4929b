"""The registry holds all searchers by name."""

from __future__ import annotations

from collections.abc import Callable

from wpk.errors import WpkError
from wpk.search.searchers.base import Searcher
from wpk.search.searchers.evolution import EvolutionSearch
from wpk.search.searchers.exhaustive import ExhaustiveSearch
from wpk.search.searchers.genetic import GeneticSearch
from wpk.search.searchers.ppo import PpoSearch
from wpk.search.searchers.random_search import RandomSearch
from wpk.search.searchers.space import SearchSpace

MakeSearcher = Callable[[SearchSpace, int], Searcher]
"""Begins a search of a space with a seed."""

SEARCHERS: dict[str, MakeSearcher] = {
    "auto": PpoSearch,  # as good as with genetic search in turn: docs/decisions/0049-what-searchers-begin-with.md
    "genetic": GeneticSearch,
    "ppo": PpoSearch,
    "evolution": EvolutionSearch,
    "random": RandomSearch,
    "exhaustive": lambda space, seed: ExhaustiveSearch(space),  # nothing is drawn
}
"""Every searcher with its default options. To add one, write a file with a `SpaceSearcher`, a line here,
and its name among the choices of `SearchOptions.search`; the tests of the contract then include it."""


def find_searcher(name: str) -> MakeSearcher:
    """Return the searcher of a name.

    Raises:
        WpkError: There is none; names those that exist.
    """
    if name not in SEARCHERS:
        raise WpkError(
            f"there is no searcher '{name}'", fix=f"choose one of {', '.join(SEARCHERS)}"
        )
    return SEARCHERS[name]
