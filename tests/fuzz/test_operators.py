"""The fuzzer of graphs draws every operator that wpk carries."""

from random import Random

import pytest
from fuzzing.builder import Builder, Rejected
from fuzzing.graphs import NEWEST_OPSET, draw
from fuzzing.operators.registry import MOVES, Entry, feature_map
from fuzzing.operators.strangers import SIMPLE

from wpk.graph_passes.clean.definitions.modern_forms import NEWEST_CHECKED_OPSET
from wpk.lowering.anchors.registry import RULES
from wpk.lowering.bare_nodes import ALIASES
from wpk.lowering.view_ops import OPERATORS
from wpk.operators import names

BARE = {"Concat", "Split", "Expand", "Gather", "Cast"}
"""Lowered by name in `wpk.lowering.bare_nodes` and `wpk.lowering.body`."""

REWRITTEN = {
    *("BatchNormalization", "DepthToSpace", "SpaceToDepth", "Attention", "Shape", "Size"),
    *("Tile", "Trilu", "EyeLike"),
}
"""Turned into others by graph passes."""

RECURRENT = {"LSTM", "GRU", "RNN"}
"""Parted in a product and a recurrence."""

OLD = {"Upsample"}
"""No operator of any opset that wpk reads."""

NEW = {"CumProd", "TensorScatter"}
"""Of opsets that the fuzzer does not draw yet."""


def carried() -> set[str]:
    """Every operator that becomes a part of a plan."""
    simple = set(names(lambda row: row.formula is not None))
    return (
        (simple | set(RULES) | set(OPERATORS) | set(ALIASES) | BARE | REWRITTEN | RECURRENT)
        - OLD
        - NEW
    )


def test_every_operator_that_wpk_carries_is_drawn() -> None:
    declared = {operator for entry in MOVES for operator in entry.operators}
    assert carried() - declared == set()


def test_no_operator_that_wpk_carries_is_drawn_to_be_refused() -> None:
    assert carried() & set(SIMPLE) == set()


@pytest.mark.parametrize("entry", MOVES, ids=[entry.name for entry in MOVES])
def test_a_move_draws_the_operators_that_it_names(entry: Entry) -> None:
    missing = set(entry.operators)
    for seed in range(600):
        if not missing:
            return
        random = Random(seed)
        builder = Builder(random, random.choice([13, 17, 20, NEWEST_OPSET, NEWEST_OPSET, 24]))
        feature_map(builder)
        builder.input([2, 4, 8])
        builder.input(["N", 1, 4, 4])
        try:
            entry.draw(builder)
        except (Rejected, IndexError):
            continue
        missing -= {node.op_type for node in builder.nodes}
    assert missing == set()


def test_the_newest_opset_is_the_newest_that_passes_know() -> None:
    assert NEWEST_OPSET == NEWEST_CHECKED_OPSET


def test_a_seed_draws_the_same_model_again() -> None:
    first, second = (draw(Random(11)) for _ in range(2))
    assert first.model.SerializeToString() == second.model.SerializeToString()
    assert (first.precision, first.sizes) == (second.precision, second.sizes)
