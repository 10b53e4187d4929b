"""The searchers of the study that are as simple as can be, or leave something out."""

import numpy as np
from spaces.ablations import COMPARED, NeighbourSearch, OrderSearch

from wpk.search.searchers.replay import Recording, replay
from wpk.search.searchers.space import SearchSpace


def test_the_simplest_searchers(bowl: Recording) -> None:
    in_order = replay(OrderSearch(bowl.space, 1), bowl, 20, batch=3)
    assert [trial.candidate.configuration for trial in in_order] == [
        bowl.space.schedule(row).parameters() for row in range(20)
    ]
    searcher = NeighbourSearch(bowl.space, 1)
    replay(searcher, bowl, 16)
    fastest = searcher.ledger.best(2)
    near = {row for each in fastest for row in bowl.space.neighbours(each).tolist()}
    (asked,) = searcher.ask(1)
    assert bowl.space.row(asked.parameters()) in near


def test_every_searcher_of_the_study_finds_a_bowl_better_than_chance(bowl: Recording) -> None:
    columns = dict(zip(bowl.space.names, bowl.space.genomes.T, strict=True))
    kind = type(bowl.space.schedule(0))
    found = {
        name: np.mean(
            [
                min(t.cost for t in replay(c.make(SearchSpace(kind, columns, {}), seed), bowl, 64))
                for seed in range(3)
            ]
        )
        for name, c in COMPARED.items()
        if name not in ("model alone", "random")
    }
    chance = np.mean([trial.cost for trial in bowl.trials])
    assert max(found.values()) < chance / 1.5
