"""Which nodes that have no kernel are handed to ONNX Runtime together."""

import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.lowering.fallback.groups import grouped

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
        # d may not join a through c: b stands between a and c.
        ("[a] s = Sin(x) [b] t = Sin(s) [c] u = Sin(t) [d] y = Add(u, s)", "acd", ["a", "cd"]),
    ],
)
def test_neighbours_are_joined_where_nothing_between_them_waits(
    nodes: str, names: str, expected: list[str]
) -> None:
    text = f"g (float[4] x) => (float[4] y) {{ {nodes} }}"
    assert ["".join(group) for group in groups(text, set(names))] == expected


def test_what_a_branch_reads_outside_of_itself_makes_neighbours() -> None:
    text = """g (float[4] x, bool c) => (float[4] y)
        { [a] s = Sin (x)
          [b] y = If (c) <then_branch = t () => (float[4] p) { [t] p = Sin (s) },
                          else_branch = e () => (float[4] q) { [e] q = Cos (s) }> }"""
    assert groups(text, {"a", "b"}) == [["a", "b"]]
