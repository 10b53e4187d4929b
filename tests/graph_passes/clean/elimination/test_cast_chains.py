"""Casts through a type that holds everything are one."""

import pytest

from wpk.graph_passes.clean.elimination.cast_chains import CastChains

TEXT = """<ir_version: 8, opset_import: ["" : 17]> g (SOURCE[3, 4] x) => (LAST[3, 4] y) {
    c = Cast<to = MIDDLE>(x)  y = Cast<to = CODE>(c) }"""
CODES = {"float": 1, "int8": 3, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "double": 11}


def _text(source: str, middle: str, last: str) -> str:
    text = TEXT.replace("SOURCE", source).replace("MIDDLE", str(CODES[middle]))
    return text.replace("LAST", last).replace("CODE", str(CODES[last]))


@pytest.mark.parametrize(
    ("source", "middle", "last"),
    [
        ("int32", "double", "int64"),
        ("int32", "double", "float"),
        ("int32", "int64", "int8"),
        ("float", "double", "float"),
        ("float", "double", "int32"),
        ("float16", "float", "float16"),
        ("bool", "int32", "float"),
        ("bool", "float", "bool"),
        ("int8", "float16", "int32"),
    ],
)
def test_a_type_that_holds_everything_is_left_out(prove, source, middle, last):
    assert prove(_text(source, middle, last), CastChains()).ops == ["Cast"]


@pytest.mark.parametrize(
    ("source", "middle", "last", "reason"),
    [
        ("float", "int32", "float", "not every float32 is a int32"),
        ("float", "float16", "float", "not every float32 is a float16"),
        ("int64", "double", "int64", "not every int64 is a float64"),
        ("int32", "float", "int64", "not every int32 is a float32"),
        ("int32", "bool", "int32", "not every int32 is a bool"),
        ("int32", "double", "int8", "what of int32 lies beyond int8 wraps around"),
    ],
)
def test_a_type_that_loses_something_stays(refusals, source, middle, last, reason):
    assert refusals(_text(source, middle, last), CastChains()) == [reason]
