"""The default searcher: turns, and learning from each other."""

from wpk.search.searchers.auto import AutoSearch
from wpk.search.searchers.genetic import GeneticSearch
from wpk.search.searchers.ppo import PpoSearch
from wpk.search.searchers.replay import Recording, replay


def test_proposals_alternate(bowl: Recording) -> None:
    searcher = AutoSearch(bowl.space, 1)
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
    searcher = AutoSearch(bowl.space, 1)
    assert searcher.proposer == ""
    proposers = []
    for _ in range(4):
        searcher.ask(1)
        proposers.append(searcher.proposer)
    assert proposers == ["genetic", "ppo"] * 2


def test_both_learn_from_all_trials(bowl: Recording) -> None:
    searcher = AutoSearch(bowl.space, 1)
    genetic, ppo = searcher._searchers
    assert isinstance(genetic, GeneticSearch)
    assert isinstance(ppo, PpoSearch)
    replay(searcher, bowl, 12, batch=12)
    assert len(genetic._members) == ppo._outcomes == 12


def test_neither_asks_for_what_the_other_asked(bowl: Recording) -> None:
    searcher = AutoSearch(bowl.space, 1)
    assert all(each.ledger is searcher.ledger for each in searcher._searchers)
