"""Which nodes that have no kernel are handed to ONNX Runtime together."""

from pathlib import Path

import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.dtypes import Precision
from wpk.lowering.fallback.groups import between, grouped
from wpk.lowering.model import lower_model

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'


def groups(text: str, names: set[str]) -> list[list[str]]:
    graph = gs.import_onnx(onnx.parser.parse_model(HEAD + text))
    return [[node.name for node in group] for group in grouped(graph.nodes, names)]


@pytest.mark.parametrize(
    ("nodes", "names", "expected"),
    [
        ("[a] s = Sin(x) [b] t = Sin(s) [c] y = Sin(t)", "abc", ["abc"]),
        ("[a] s = Sin(x) [b] t = Sin(s) [c] y = Sin(t)", "ac", ["a", "c"]),
        # a gives to c directly, but c waits for b, which waits for a.
        ("[a] s = Sin(x) [b] t = Sin(s) [c] y = Add(s, t)", "ac", ["a", "c"]),
        ("[a] s = Sin(x) [b] t = Sin(x) [c] y = Add(s, t)", "ac", ["ac"]),
        # Joined by what reads both; e waits for neither way around.
        (
            "[a] s = Sin(x) [b] t = Sin(x) [c] u = Add(s, t) [d] v = Sin(u) [e] y = Add(v, s)",
            "abce",
            ["abc", "e"],
        ),
        ("[a] s = Sin(x) [b] t = Sin(x) [c] y = Mul(x, x)", "ab", ["a", "b"]),
        # What leads around a and d is a part of d's group in time.
        (
            "[a] s = Sin(x) [b] t = Sin(s) [c] u = Sin(t) [d] v = Add(s, u) [e] y = Add(v, t)",
            "abcde",
            ["abcde"],
        ),
        (
            "[a] s = Sin(x) [b] t = Sin(x) [c] u = Sin(x) [d] v = Sin(x) [e] r = Sum(s, t, u, v) [f] y = Add(r, s)",
            "abcdef",
            ["abcdef"],
        ),
        # d may not join a through c: b stands between a and c.
        ("[a] s = Sin(x) [b] t = Sin(s) [c] u = Sin(t) [d] y = Add(u, s)", "acd", ["a", "cd"]),
    ],
)
def test_neighbours_are_joined_where_nothing_between_them_waits(
    nodes: str, names: str, expected: list[str]
) -> None:
    text = f"g (float[4] x) => (float[4] y) {{ {nodes} }}"
    assert ["".join(group) for group in groups(text, set(names))] == expected


@pytest.mark.parametrize(
    ("nodes", "few", "expected"),
    [
        ("[a] s = Sin(x) [b] t = Sin(s) [c] y = Sin(t)", "b", "b"),
        ("[a] s = Sin(x) [b] t = Sin(s) [c] y = Sin(t)", "", ""),
        ("[a] s = Sin(x) [b] r = Sin(s) [d] t = Sin(r) [c] y = Sin(t)", "bd", "bd"),
        ("[a] s = Sin(x) [b] r = Sin(s) [d] t = Sin(r) [c] y = Sin(t)", "b", ""),
        # b does not come from a, nor does d, which a kernel reads as well, lead to c alone.
        ("[a] s = Sin(x) [b] t = Sin(x) [c] y = Add(s, t)", "b", ""),
        ("[a] s = Sin(x) [d] t = Sin(s) [c] u = Sin(t) [k] y = Add(u, t)", "d", ""),
        ("[a] s = Sin(x) [d] y = Sin(s)", "d", ""),
    ],
)
def test_what_stands_between_comes_from_one_and_leads_to_others_alone(
    nodes: str, few: str, expected: str
) -> None:
    text = f"g (float[4] x) => (float[4] y) {{ {nodes} }}"
    graph = gs.import_onnx(onnx.parser.parse_model(HEAD + text))
    assert "".join(sorted(between(graph.nodes, {"a", "c"}, set(few)))) == expected


def lowered(folder: Path, kept: str) -> list[str]:
    """The operators of a TopK whose number of places is counted, by kind; ``kept``: of what is counted, too."""
    outputs = "float[k] v" + (", int64[2] both" if kept else "")
    text = f"""g (float[40] x, float[40] m) => ({outputs})
        <int64[1] most = {{7}}, int64[1] axis = {{0}}, float[1] half = {{0.5}}> {{
        b = Greater(m, half)  z = NonZero(b)  t = Transpose(z)  s = GatherND(x, t)  n = Shape(s)
        both = Concat<axis = 0>(n, most)  k = ReduceMin(both, axis)
        v, i = TopK(s, k) }}"""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> {text}')
    onnx.save(model, folder / "model.onnx")
    program = lower_model(folder / "model.onnx", {}, Precision.FP32, fallback=True).program
    return [type(each.problem).__name__ for each in program.operators]


def test_a_few_numbers_do_not_part_two_steps(tmp_path: Path) -> None:
    assert lowered(tmp_path, "") == ["Elementwise", "Fallback"]
    apart = lowered(tmp_path, "both")
    assert apart.count("Fallback") == 2  # a kernel joins what is an output of the model


def test_what_a_branch_reads_outside_of_itself_makes_neighbours() -> None:
    text = """g (float[4] x, bool c) => (float[4] y)
        { [a] s = Sin (x)
          [b] y = If (c) <then_branch = t () => (float[4] p) { [t] p = Sin (s) },
                          else_branch = e () => (float[4] q) { [e] q = Cos (s) }> }"""
    assert groups(text, {"a", "b"}) == [["a", "b"]]
