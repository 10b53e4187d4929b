"""Graphs compared in float64: every tensor that both have, fed with the original's values."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk import blocks
from wpk.checks import float64_nodes, pass_check
from wpk.checks.evaluation import Opinions
from wpk.checks.pass_check import PassComparison, compare_graphs
from wpk.checks.reference.operators import REFERENCE_OPS
from wpk.checks.second_opinion import Judgement, SecondOpinion, Verdict
from wpk.graph_passes.clean.control_flow.inline_conditionals import InlineConditionals
from wpk.graph_passes.core.exact import rounded_constant
from wpk.graph_passes.fold.batch_norm import BatchNormToAffine
from wpk.lowering.flat_graph import flatten
from wpk.plan.plan import Outcome

TEXT = """<ir_version: 8, opset_import: ["": 17]>
m (float[2,3] x) => (float[2,3] y, int64[2,3] k)
<float[3] c = {1.5, 2, 0.3}, float h = {0.1}>
{
    a = Mul(x, c)
    b = Add(a, h)
    r = Relu(b)
    y = Exp(r)
    f = Floor(a)
    k = Cast<to = 7>(f)
}"""

Inputs = Mapping[str, np.ndarray]


def graph(text: str = TEXT) -> gs.Graph:
    loaded = gs.import_onnx(onnx.parser.parse_model(text))
    for index, node in enumerate(loaded.nodes):
        node.name = f"{node.op}_{index}"
    return loaded


def drawn(seed: int = 0) -> Inputs:
    return {"x": np.random.default_rng(seed).standard_normal((2, 3)).astype(np.float32)}


def compared(change: Callable[[gs.Graph], None], inputs: Inputs | None = None) -> PassComparison:
    changed = graph()
    change(changed)
    return compare_graphs(flatten(graph()), flatten(changed), inputs or drawn())


def node(of: gs.Graph, op: str) -> gs.Node:
    return next(each for each in of.nodes if each.op == op)


CONDITIONAL = """<ir_version: 8, opset_import: ["": 17]>
m (float[2,3] x) => (float[2,3] y) <float[3] c = {0.1, 2, 0.3}, bool yes = {1}>
{
    a = Exp(x)
    y = If(yes) <then_branch = one () => (float[2,3] t)
                     <float h = {0.1}> { p = Mul(a, c)  q = Add(p, h)  t = Cast<to = 1>(q) },
                 else_branch = two () => (float[2,3] u) { u = Neg(a) }>
}"""


@pytest.mark.parametrize(("branch", "differ"), [("q = Add(p, h)", 0), ("q = Sub(p, h)", 1)])
def test_a_branch_reads_from_outside_and_computes_in_float64(branch: str, differ: int) -> None:
    original = flatten(graph(CONDITIONAL))
    changed = graph(CONDITIONAL.replace("q = Add(p, h)", branch))
    InlineConditionals()(changed)
    found = compare_graphs(original, flatten(changed), drawn())
    assert len(found.differences) == differ


def test_an_epsilon_that_is_not_given_is_folded_as_the_fp32_number_that_it_is() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    m (float[2,3] x) => (float[2,3] y)
    <float[3] s = {1, 2, 3}, float[3] t = {0, 1, 2}, float[3] m = {4, 5, 6}, float[3] v = {1e-6, 1e-7, 0}>
    { y = BatchNormalization(x, s, t, m, v) }"""
    changed = graph(text)
    BatchNormToAffine()(changed)
    found = compare_graphs(flatten(graph(text)), flatten(changed), drawn())
    assert [each.op for each in changed.nodes] == ["Mul", "Add"]
    assert found.differences == []


def test_the_same_graph_is_equal_at_every_tensor() -> None:
    found = compared(lambda graph: None)
    assert (found.compared, found.bounded, found.differences) == (6 + 2, 0, [])
    x = drawn()["x"].astype(np.float64)
    c = np.array([1.5, 2, np.float32(0.3)])
    expected = np.exp(np.maximum(x * c + float(np.float32(0.1)), 0))
    np.testing.assert_allclose(found.outputs["y"].array, expected, rtol=2e-15)
    np.testing.assert_array_equal(found.outputs["k"].array, np.floor(x * c).astype(np.int64))


def test_a_change_of_one_rounding_of_fp32_is_found_where_it_is_made() -> None:
    def change(graph: gs.Graph) -> None:
        node(graph, "Relu").op = "LeakyRelu"
        node(graph, "LeakyRelu").attrs = {"alpha": 1e-7}

    found = compared(change)
    first = found.differences[0]
    assert (first.tensor, first.operator, first.nodes) == ("r", "Relu_2", ("Relu_2",))
    assert "elements differ" in str(first)
    assert not np.array_equal(
        found.outputs["y"].array, compared(lambda graph: None).outputs["y"].array
    )


NUMBERS = """<ir_version: 8, opset_import: ["": 17]>
m (float[2] x) => (float[2] y) <float[2] c = {0.5, 0.25}> { y = Add(x, c) }"""


@pytest.mark.parametrize(
    ("moved", "bounded", "differ"),
    [
        ([2.0, 2.0], 0, ""),  # of an RMS of 2.2
        ([0.0, -2.0], 0, ""),
        ([0.75, 2.75], 1, ""),  # of 1 and 3
        ([2.5, 2.5], 1, "1 of 2 elements differ; [0] is 1"),
        ([-0.75, -3.25], 1, "1 of 2 elements differ; [1] is 3"),
        ([4.0, -4.0], 1, "2 of 2 elements differ; [0] is 1"),
    ],
)
def test_float64_is_equal_to_two_to_the_minus_40(
    moved: list[float], bounded: int, differ: str
) -> None:
    changed = graph(NUMBERS)
    c = np.array([0.5, 0.25]) + np.array(moved) * 2.0**-40
    changed.nodes[0].inputs[1] = rounded_constant("other", c, np.float32)
    x = {"x": np.array([0.5, 2.75], np.float32)}
    found = compare_graphs(flatten(graph(NUMBERS)), flatten(changed), x)
    assert (found.compared, found.bounded) == (1, bounded)
    assert [each.detail[: len(differ)] for each in found.differences] == [differ] * bool(differ)


def test_what_is_no_number_must_be_so_in_both() -> None:
    original, changed = flatten(graph(NUMBERS)), graph(NUMBERS)
    x = {"x": np.array([np.nan, 2.75], np.float32)}
    assert compare_graphs(original, flatten(changed), x).differences == []
    changed.nodes[0].inputs[1] = gs.Constant("other", np.array([0.5, np.nan], np.float32))
    (found,) = compare_graphs(original, flatten(changed), x).differences
    assert found.detail.startswith("1 of 2 elements differ; [1] is nan, the model's 3, ")


def test_zeros_and_nothing_are_equal() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    m (float[2] x, float[N,0] e) => (float[2] y, float[N,0] z) { y = Neg(x)  z = Exp(e) }"""
    inputs = {"x": np.zeros(2, np.float32), "e": np.zeros((3, 0), np.float32)}
    found = compare_graphs(flatten(graph(text)), flatten(graph(text)), inputs)
    assert (found.compared, found.bounded, found.differences) == (2, 0, [])


@pytest.mark.parametrize("place", [0, 31, 57, 99])
def test_one_element_of_many_is_found(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 8)
    text = '<ir_version: 8, opset_import: ["": 17]> m (float[100] x) => (float[100] y)'
    original, changed = graph(text + "{ y = Neg(x) }"), graph(text + "{ y = Mul(x, x) }")
    factors = np.full(100, -1.0)
    factors[place] -= 2.0**-30
    changed.nodes[0].inputs[1] = rounded_constant("factors", factors, np.float32)
    x = {"x": np.arange(1, 101, dtype=np.float32)}
    (found,) = compare_graphs(flatten(original), flatten(changed), x).differences
    assert found.detail.startswith(f"1 of 100 elements differ; [{place}] is ")


def test_every_output_of_a_node_is_compared() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> m (float[4] x) => (float[2] y, float[2] z)
    { a, z = Split(x)  b = Neg(a)  y = Neg(b) }"""
    changed = graph(text)
    changed.nodes[0].outputs[0].name = "another"
    changed.nodes[0].inputs.append(gs.Constant("sizes", np.array([2, 2])))
    x = {"x": np.arange(4, dtype=np.float32)}
    found = compare_graphs(flatten(graph(text)), flatten(changed), x)
    assert (found.compared, found.differences) == (3, [])  # z, b and y


INTEGERS = """<ir_version: 8, opset_import: ["": 17]>
m (int64[3] i) => (int64[3] k) <int64[3] c = {1, 2, 3}> { k = Add(i, c) }"""


def test_one_integer_that_differs_is_found() -> None:
    changed = graph(INTEGERS)
    changed.nodes[0].inputs[1] = gs.Constant("other", np.array([1, 2, 4]))
    i = {"i": np.array([2**60, 2**60, 2**60])}
    (found,) = compare_graphs(flatten(graph(INTEGERS)), flatten(changed), i).differences
    assert found.detail.startswith("1 of 3 elements differ; [2] is")
    assert compare_graphs(flatten(graph(INTEGERS)), flatten(graph(INTEGERS)), i).bounded == 0


@pytest.mark.parametrize(("value", "differ"), [(0.375, []), (0.5, ["d"])])
def test_a_constant_that_a_pass_computed_is_compared_and_stands_for_its_tensor(
    value: float, differ: list[str]
) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    m (float[2] x) => (float[2] y) <float c = {1.5}, float h = {0.25}> { BODY }"""
    original = graph(text.replace("BODY", "d = Mul(c, h)  y = Add(x, d)"))
    folded = graph(
        text.replace("float h = {0.25}", f"float d = {{{value}}}").replace("BODY", "y = Add(x, d)")
    )
    x = {"x": np.array([1, 2], np.float32)}
    found = compare_graphs(flatten(original), flatten(folded), x)
    assert [each.tensor for each in found.differences] == differ
    assert all(
        (each.operator, each.nodes) == ("a constant", ("Mul_0",)) for each in found.differences
    )
    assert found.compared == 2  # d and y


def test_a_changed_constant_is_found_by_its_name() -> None:
    def change(graph: gs.Graph) -> None:
        old = node(graph, "Mul").inputs[1]
        old.values = np.nextafter(old.values, np.float32(9))

    assert [each.tensor for each in compared(change).differences][:2] == ["c", "a"]


def test_what_a_pass_computes_is_exact_and_its_rounding_is_not_compared() -> None:
    """B = x c + h as one product with c / h, behind which h is multiplied."""

    def change(graph: gs.Graph, *, exact: bool = True) -> None:
        product, add = node(graph, "Mul"), node(graph, "Add")
        c, h = (np.float64(each.inputs[1].values) for each in (product, add))
        new = rounded_constant("c_over_h", c / h, np.float32)
        inner = gs.Variable("inner", np.float32, [2, 3])
        more = gs.Variable("more", np.float32, [2, 3])
        one = gs.Constant("one", np.ones(1, np.float32))
        kept = new if exact else gs.Constant("c_over_h", new.values)
        graph.nodes += [
            gs.Node("Mul", "first", {}, [graph.inputs[0], kept], [inner]),
            gs.Node("Add", "second", {}, [inner, one], [more]),
        ]
        factor = add.inputs[1]
        add.op, add.inputs = "Mul", [more, factor]
        graph.toposort()

    assert not compared(change).differences
    rounded = compared(lambda graph: change(graph, exact=False)).differences
    assert rounded[0].tensor == "b"


def test_a_tie_may_fall_either_way_and_nothing_else_may() -> None:
    """Floor(x * c) with c split in two factors: whole numbers may become the one below."""

    def change(graph: gs.Graph) -> None:
        product = node(graph, "Mul")
        third = np.float64(1.0) / 3
        parts = [
            rounded_constant(name, values, np.float32)
            for name, values in (
                ("c1", np.float64(product.inputs[1].values) * third),
                ("c2", np.full(1, 3.0 * (1 - 2.0**-52))),
            )
        ]
        inner = gs.Variable("inner", np.float32, [2, 3])
        graph.nodes.append(gs.Node("Mul", "first", {}, [product.inputs[0], parts[0]], [inner]))
        product.inputs = [inner, parts[1]]
        product.outputs[0].name = "another_a"  # else it is fed with the original's
        graph.toposort()

    ties = {"x": np.array([[2, 1, 0], [4, 3, 0]], np.float32)}
    found = compared(change, ties)
    assert not [each for each in found.differences if each.tensor in ("f", "k")]
    assert found.bounded > 0

    def wrong(graph: gs.Graph) -> None:
        change(graph)
        node(graph, "Floor").op = "Ceil"

    assert [each.tensor for each in compared(wrong).differences][:1] == ["f"]


def test_shapes_and_not_a_number_are_compared() -> None:
    def transposed(graph: gs.Graph) -> None:
        add = node(graph, "Add")
        inner = gs.Variable("inner", np.float32, [3, 2])
        graph.nodes.append(gs.Node("Transpose", "t", {"perm": [1, 0]}, [add.inputs[0]], [inner]))
        old = add.outputs[0]
        graph.nodes.remove(add)
        graph.nodes.append(gs.Node("Add", "new", {}, [inner, add.inputs[1]], [old]))
        add.inputs.clear()
        add.outputs.clear()
        graph.toposort()

    first = compared(transposed).differences[0]
    assert first.detail == "its shape is [3, 2], the model's [2, 3]"
    undefined = {"x": np.full((2, 3), np.nan, np.float32)}
    assert not [d for d in compared(lambda g: None, undefined).differences if d.tensor != "k"]


@pytest.mark.parametrize("planted", [False, True])
def test_every_kind_of_node_is_judged_by_onnx_runtime(
    planted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Exp(onnx.reference.op_run.OpRun):
        op_domain = ""

        def _run(self, x):  # type: ignore[no-untyped-def]
            return (np.exp(x) * (1.01 if planted else 1.0),)

    monkeypatch.setattr(float64_nodes, "REFERENCE_OPS", [*REFERENCE_OPS, Exp])
    opinions = Opinions()
    flat = flatten(graph())
    assert not compare_graphs(flat, flat, drawn(), opinions).differences  # it cancels out
    check = opinions.check()
    assert check.outcome is (Outcome.FAILED if planted else Outcome.OK)
    assert ("'Exp_3' (Exp)" if planted else "6 kinds of nodes agree") in check.detail


def test_evaluators_that_nobody_can_judge_are_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(self: SecondOpinion, *_: object) -> Judgement:
        return Judgement(Verdict.CANNOT, "no kernel")

    opinions = Opinions()
    monkeypatch.setattr(SecondOpinion, "judge", cannot)
    flat = flatten(graph())
    compare_graphs(flat, flat, drawn(), opinions)
    assert opinions.check().outcome is Outcome.INCONCLUSIVE
    assert "ONNX Runtime cannot say of " in opinions.check().detail


def test_integers_are_compared_as_such_also_where_the_rewritten_graph_has_numbers() -> None:
    def nearly(of: gs.Graph) -> None:
        """The cast becomes a product with a number that float64 hardly tells from 1."""
        cast = node(of, "Cast")
        almost = rounded_constant("almost", np.array(1 + 2.0**-45), np.float32)
        inputs, outputs = [cast.inputs[0], almost], list(cast.outputs)
        cast.outputs.clear()
        of.nodes.remove(cast)
        of.nodes.append(gs.Node("Mul", "almost", {}, inputs, outputs))

    found = compared(nearly, {"x": np.full((2, 3), 3.0, np.float32)})
    assert [each.tensor for each in found.differences] == ["k"]


def test_an_activation_in_another_form_may_round_where_it_gives_nothing() -> None:
    """Relu(x c + h) as c (Max(x, -h / c) + h / c), of numbers that are below the limit."""
    text = """<ir_version: 8, opset_import: ["": 17]>
    m (float[2,3] x) => (float[2,3] y) <float c = {1.7}, float h = {0.3}> { BODY }"""
    plain = "a = Mul(x, c)  b = Add(a, h)  y = Relu(b)"
    limited = "r = Max(x, m)  s = Mul(r, c)  y = Add(s, h)"
    c, h = (float(np.float32(each)) for each in (1.7, 0.3))

    def other(error: float) -> gs.Graph:
        changed = graph(text.replace("float h", "float m = {0}, float h").replace("BODY", limited))
        limit = rounded_constant("limit", np.array(-h / c + error), np.float32)
        node(changed, "Max").inputs[1] = limit
        return changed

    original = flatten(graph(text.replace("BODY", plain)))
    below = {"x": -1 - np.abs(drawn()["x"])}
    for error, differ in ((2.0**-53, 0), (2.0**-18, 1)):  # scalars are known as fp32 holds them
        assert len(compare_graphs(original, flatten(other(error)), below).differences) == differ


def test_memory_is_let_go_of_when_nobody_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long chain a few tensors are held at a time, in both graphs together."""
    steps = [f"t{i} = Relu(t{i - 1})" for i in range(1, 40)]
    head = '<ir_version: 8, opset_import: ["": 17]> m (float[8] t0) => (float[8] t39)'
    flat, held = flatten(graph(f"{head} {{ {' '.join(steps)} }}")), list[int]()
    walk = pass_check._Walk(flat, flat, {"t0": np.ones(8, np.float32)}, None)

    def count() -> None:
        arrays = (*walk.values.values(), *walk.original._values.values())
        held.append(len({id(each) for each in arrays}))

    assert walk.compare(count).compared == 39
    assert max(held) <= 4
    monkeypatch.setattr(pass_check._Walk, "_release", lambda *_: None)
    again = pass_check._Walk(flat, flat, {"t0": np.ones(8, np.float32)}, None)
    assert again.compare(lambda: None).compared == 39
    assert len(again.original._values) == 40
