"""Reading models: what is accepted, and what is refused in which words."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from wpk.errors import GraphError, UnsupportedError
from wpk.loading import load_graph
from wpk.shape_ranges import SizeRange, parse_shapes, size_ranges

RELU = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }
"""


def save(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def test_a_batch_may_stay_free(tmp_path: Path) -> None:
    graph = load_graph(save(tmp_path, RELU))
    assert graph.inputs[0].shape == ["N", 4]


def test_several_dimensions_may_stay_free(tmp_path: Path) -> None:
    graph = load_graph(save(tmp_path, RELU.replace("[N, 4]", "[N, L]")))
    assert graph.inputs[0].shape == ["N", "L"]


def test_dimensions_without_a_name_are_named(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(RELU)
    for info in (*model.graph.input, *model.graph.output):
        for dim in info.type.tensor_type.shape.dim:
            dim.Clear()
    onnx.save(model, tmp_path / "m.onnx")
    assert load_graph(tmp_path / "m.onnx").inputs[0].shape == ["batch", "x.1"]


def test_shapes_bind_a_symbol_wherever_it_occurs(tmp_path: Path) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N, 4] x, float[N, 4] z) => (float[N, 4] y) { y = Add(x, z) }
    """
    graph = load_graph(save(tmp_path, text), {"x": (3, 4)})
    assert [t.shape for t in (*graph.inputs, *graph.outputs)] == [[3, 4]] * 3


def test_minus_one_leaves_the_batch_free_while_others_are_bound(tmp_path: Path) -> None:
    text = RELU.replace("[N, 4]", "[N, L]")
    graph = load_graph(save(tmp_path, text), {"x": (-1, 6)})
    assert graph.inputs[0].shape == ["N", 6]


def test_every_node_gets_a_unique_name(tmp_path: Path) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[4] x) => (float[4] y) { [same] a = Relu(x) [same] b = Neg(a) c = Abs(b) y = Abs(c) }
    """
    names = [node.name for node in load_graph(save(tmp_path, text)).nodes]
    assert len(set(names)) == 4
    assert names[0] == "same"


def test_local_functions_are_inlined(tmp_path: Path) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17, "own" : 1]>
    g (float[4] x) => (float[4] y) { y = own.twice(x) }
    <domain: "own", opset_import: ["" : 17]>
    twice (a) => (b) { b = Add(a, a) }
    """
    assert [node.op for node in load_graph(save(tmp_path, text)).nodes] == ["Add"]


def test_initializers_are_no_inputs(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ones(4, np.float32), "w")
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xwy"]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])], "g", info[:2], info[2:], [weight]
    )
    path = tmp_path / "old.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)]), path)
    assert [tensor.name for tensor in load_graph(path).inputs] == ["x"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (RELU.replace("17", "10"), "uses opset 10"),
        (RELU.replace("17", "999"), "uses opset 999"),
        (RELU.replace("[N, 4]", "[N, L, M, K, J]"), "5 free dimensions: 'N', 'L', 'M', 'K', 'J'"),
        (RELU.replace("[N, 4]", "[70000, 70000]"), "claims 4900000000 elements"),
        (
            RELU.replace("y = Relu(x)", "a = Add(x, y) y = Relu(a)"),
            "topological",
        ),
        (RELU.replace("[N, 4] y", "[N, 4] x").replace("y = Relu(x)", ""), "0 nodes"),
    ],
)
def test_refuses_models_it_cannot_carry(tmp_path: Path, text: str, reason: str) -> None:
    path = save(tmp_path, text)
    with pytest.raises(GraphError, match=reason):
        load_graph(path)


def test_lists_every_unknown_operator_at_once(tmp_path: Path) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17, "com.acme" : 1]>
    g (float[4] x) => (float[4] y) { [a] p = Blah(x) [b] q = com.acme.Thing(p) y = Relu(q) }
    """
    path = save(tmp_path, text)
    with pytest.raises(UnsupportedError) as caught:
        load_graph(path)
    assert "a: Blah: not in the model's opset" in caught.value.what
    assert "b: Thing: domain 'com.acme'" in caught.value.what


@pytest.mark.parametrize("content", [b"", b"\x08\x07\x12\x04ab", bytes(range(256)) * 9])
def test_refuses_files_that_are_no_model(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    with pytest.raises(GraphError):
        load_graph(path)


def test_refuses_a_model_that_is_cut_off(tmp_path: Path) -> None:
    path = save(tmp_path, RELU)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(GraphError):
        load_graph(path)


def test_refuses_missing_external_data(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> '
        "g (float[1, 64] x, float[64, 64] w) => (float[1, 64] y) { y = MatMul(x, w) }"
    )
    del model.graph.input[1]
    model.graph.initializer.append(weight)
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="model.data", size_threshold=0)
    assert len(load_graph(path).nodes) == 1
    (tmp_path / "model.data").unlink()
    with pytest.raises(GraphError, match=r"model\.data"):
        load_graph(path)


def test_reads_trtexec_shapes() -> None:
    assert parse_shapes("x:1x3x8x8,'a:b':-1x64") == {"x": ((1, 3, 8, 8),), "a:b": ((-1, 64),)}


def test_reads_the_smallest_the_fastest_and_the_largest_shape() -> None:
    assert parse_shapes("x:1x16:8x16:32x16,input:0:4") == {
        "x": ((1, 16), (8, 16), (32, 16)),
        "input:0": ((4,),),
    }
    assert parse_shapes("x:2x4:2x4:2x4") == {"x": ((2, 4),)}


@pytest.mark.parametrize(
    "text", ["x:1:8:4", "x:0:1:2", "x:-1x4:2x4:3x4", "'x':1x4:2x4:3", "x:2:1:4"]
)
def test_refuses_three_shapes_that_are_no_range(text: str) -> None:
    with pytest.raises(GraphError, match=r"smallest, fastest and largest|neither one"):
        parse_shapes(text)


def test_a_dimension_with_a_range_stays_free(tmp_path: Path) -> None:
    path = save(tmp_path, RELU)
    free = load_graph(path, {}).inputs[0].shape
    rest = [2 if isinstance(n, str) else n for n in free[1:]]
    shapes = {"x": [[n, *rest] for n in (1, 4, 9)]}
    assert load_graph(path, shapes).inputs[0].shape == [free[0], *rest]
    assert size_ranges({"x": free}, shapes) == {free[0]: SizeRange(1, 4, 9)}


def test_a_dimension_may_stay_free_beside_one_with_a_range() -> None:
    shapes = parse_shapes("x:-1x8:-1x16:-1x32")
    assert size_ranges({"x": ["n", "m"]}, shapes) == {"m": SizeRange(8, 16, 32)}


def test_refuses_two_ranges_of_one_dimension() -> None:
    shapes = {"x": [[1], [2], [3]], "y": [[1], [2], [4]]}
    with pytest.raises(GraphError, match="'n' two ranges"):
        size_ranges({"x": ["n"], "y": ["n"]}, shapes)


@pytest.mark.parametrize("text", ["", "x", "x:", "x:1x", "x:axb", "x:1,x:2", ":1x2", "x:-2"])
def test_refuses_shapes_outside_the_grammar(text: str) -> None:
    with pytest.raises(GraphError, match="--shapes"):
        parse_shapes(text)


@pytest.mark.parametrize(
    ("shapes", "reason"),
    [
        ({"z": (1,)}, "no input of the model"),
        ({"x": (1, 4, 4)}, "3 dimensions"),
        ({"x": (1, 5)}, "fixes it to \\[N, 4\\]"),
        ({"x": (0, 4)}, "empty dimension"),
    ],
)
def test_refuses_shapes_that_do_not_fit(
    tmp_path: Path, shapes: dict[str, tuple[int, ...]], reason: str
) -> None:
    with pytest.raises(GraphError, match=reason):
        load_graph(save(tmp_path, RELU), shapes)


def test_damaged_constants_are_named(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> '
        "g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> { y = Add(x, w) }"
    )
    model.graph.initializer[0].dims[0] = 3
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(GraphError, match="constant 'w' is damaged"):
        load_graph(tmp_path / "model.onnx")


def test_types_that_onnx_does_not_have_are_named(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(RELU)
    model.graph.input[0].type.tensor_type.elem_type = 99
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(UnsupportedError, match="input 'x': type 99"):
        load_graph(tmp_path / "model.onnx")
