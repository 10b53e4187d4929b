"""The searchers of the study that are as simple as can be, or leave something out."""

import numpy as np
from spaces.ablations import COMPARED, BothSearch, NeighbourSearch, OrderSearch

from wpk.search.searchers.genetic import GeneticSearch
from wpk.search.searchers.ppo import PpoSearch
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


def test_proposals_alternate(bowl: Recording) -> None:
    searcher = BothSearch(bowl.space, 1)
    genetic, ppo = searcher._searchers
    assert isinstance(genetic, GeneticSearch)
    assert isinstance(ppo, PpoSearch)
    replay(searcher, bowl, 16, batch=16)  # the random start
    members = set(genetic._members)
    asked = searcher.ask(20)
    rows = [bowl.space.row(schedule.parameters()) for schedule in asked]
    assert set(rows[1::2]) == set(ppo._waiting)
    assert set(rows[0::2]) <= genetic._members
    assert len(genetic._members - members) == 10


def test_each_proposal_names_whose_it_was(bowl: Recording) -> None:
    searcher = BothSearch(bowl.space, 1)
    assert searcher.proposer == ""
    proposers = []
    for _ in range(4):
        searcher.ask(1)
        proposers.append(searcher.proposer)
    assert proposers == ["genetic", "ppo"] * 2


def test_both_learn_from_all_trials(bowl: Recording) -> None:
    searcher = BothSearch(bowl.space, 1)
    genetic, ppo = searcher._searchers
    assert isinstance(genetic, GeneticSearch)
    assert isinstance(ppo, PpoSearch)
    replay(searcher, bowl, 12, batch=12)
    assert len(genetic._members) == ppo._outcomes == 12


def test_neither_asks_for_what_the_other_asked(bowl: Recording) -> None:
    searcher = BothSearch(bowl.space, 1)
    assert all(each.ledger is searcher.ledger for each in searcher._searchers)
