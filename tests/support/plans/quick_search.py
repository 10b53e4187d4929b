"""A search that compiles one schedule a problem: for tests that ask what a plan computes, not how fast."""

import pytest

from wpk.search.models import model_search
from wpk.search.models.static_search import Shortlists


def compile_one(patch: pytest.MonkeyPatch) -> None:
    """Let a search compile the schedule that the models like best, and others only if it fails."""
    patch.setattr(model_search, "FINALISTS", 1)
    patch.setattr(Shortlists.finalists, "__defaults__", (0, 1))


@pytest.fixture
def one_finalist(monkeypatch: pytest.MonkeyPatch) -> None:
    """`compile_one` for a test."""
    compile_one(monkeypatch)
