"""The lists of operators by how they round, and which of their inputs say how they compute."""

import onnx
import pytest

from wpk.checks.disturbed import parameters
from wpk.checks.rounding_operators import AROUND_ONE, EXACT, SHAPES, SUMS
from wpk.lowering.flat_graph import FlatGraph, FlatNode


def test_what_rounds_nothing_neither_sums_nor_is_written_with_one() -> None:
    assert EXACT.isdisjoint(SUMS | AROUND_ONE)
    assert EXACT.issuperset(SHAPES)


def test_every_operator_is_one_of_onnx() -> None:
    known = {schema.name for schema in onnx.defs.get_all_schemas_with_history()}
    assert known.issuperset(SUMS | EXACT | AROUND_ONE)


@pytest.mark.parametrize(
    ("operator", "inputs", "found"),
    [
        ("Range", "start limit step", "start limit step"),
        ("Resize", "x roi scales sizes", "roi scales sizes"),
        ("Upsample", "x scales", "scales"),
        ("Add", "x z", ""),
    ],
)
def test_the_inputs_that_say_how_an_operator_computes(
    operator: str, inputs: str, found: str
) -> None:
    """They are found with all that they are computed from."""
    names = inputs.split()
    nodes = [
        onnx.helper.make_node("Neg", [f"of_{names[-1]}"], [names[-1]]),
        onnx.helper.make_node(operator, names, ["y"]),
        onnx.helper.make_node("Exp", ["y"], ["z"]),
    ]
    flat = tuple(FlatNode(each, each.op_type, tuple(each.output)) for each in nodes)
    expected = {*found.split(), f"of_{names[-1]}"} if found else set()
    assert parameters(FlatGraph(flat, {}, (), ("z",), 17)) == expected
