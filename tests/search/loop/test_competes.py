"""Whether forms of a model compete, as is asked and as far as they can."""

import logging
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wpk.errors import EngineError
from wpk.options import OptionError, SearchOptions
from wpk.search.loop.form_contest import MOST_WEIGHT_BYTES, competes


def lowered(weight_bytes: int = 8, bodies: bool = False) -> Any:
    weights = np.broadcast_to(np.zeros(1, np.uint8), (weight_bytes,))
    program = SimpleNamespace(constants={"w": weights})
    source = SimpleNamespace(changed=frozenset())
    return SimpleNamespace(program=program, source=source, bodies={"m": ()} if bodies else {})


@pytest.mark.parametrize(
    ("forms", "operators", "measured", "expected"),
    [
        ("auto", (), True, True),
        ("auto", (), False, False),
        ("auto", ("conv_*",), True, False),
        ("fixed", (), True, False),
        ("search", (), True, True),
        ("search", (), False, True),
    ],
)
def test_they_do_where_all_is_measured_or_where_it_is_asked_for(
    forms: str, operators: tuple[str, ...], measured: bool, expected: bool
) -> None:
    options = SearchOptions(forms=forms, operators=operators)
    assert competes(options, lowered(), measured=measured) is expected


def test_named_operators_alone_decide_over_no_form() -> None:
    options = SearchOptions(forms="search", operators=("conv_*",))
    with pytest.raises(EngineError, match="--ops names conv_\\*"):
        competes(options, lowered(), measured=True)


@pytest.mark.parametrize(
    ("model", "reason"),
    [(lowered(MOST_WEIGHT_BYTES + 1), "weights take 4.0 GiB"), (lowered(bodies=True), "bodies")],
)
def test_what_cannot_compete_is_said_where_it_is_asked_for(
    model: Any, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert not competes(SearchOptions(forms="auto"), model, measured=True)
        assert not caplog.records
        assert not competes(SearchOptions(forms="search"), model, measured=True)
    assert reason in caplog.text


def test_other_words_are_refused() -> None:
    with pytest.raises(OptionError, match="forms is 'all'"):
        SearchOptions(forms="all")
