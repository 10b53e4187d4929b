"""Stretches that are evaluated part by part give what the nodes give as a whole, with the same bounds."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx.helper import make_node

from wpk import blocks
from wpk.checks import body, stretches
from wpk.checks.body import BodyOutput, NodeBody
from wpk.dtypes import DType

Arrays = dict[str, np.ndarray]


def _array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float16)


def _evaluated(nodes: list[onnx.NodeProto], arrays: Arrays, outputs: list[str]) -> list[BodyOutput]:
    opset = onnx.helper.make_opsetid("", 21)
    function = onnx.helper.make_function("wpk", "f", [*arrays], outputs, nodes, [opset])
    call = make_node("f", [*arrays], outputs, domain="wpk")
    dtypes = [DType.FP16] * len(outputs)
    return NodeBody(call, function, {"": 21})([*arrays.values()], (), 0.0, dtypes)


ATTENTION = [
    make_node("MatMul", ["q", "k"], ["scores"]),
    make_node("Cast", ["scores"], ["wide"], to=onnx.TensorProto.FLOAT),
    make_node("Mul", ["wide", "factor"], ["scaled"]),
    make_node("Add", ["scaled", "bias"], ["biased"]),
    make_node("Add", ["biased", "mask"], ["masked"]),
    make_node("Softmax", ["masked"], ["weights"], axis=-1),
    make_node("Cast", ["weights"], ["narrow"], to=onnx.TensorProto.FLOAT16),
    make_node("Reshape", ["values", "sizes"], ["v"]),
    make_node("MatMul", ["narrow", "v"], ["sums"]),
    make_node("Transpose", ["sums"], ["y"], perm=[0, 2, 1, 3]),
]
WINDOWS = {
    "q": _array(7, 3, 9, 5),
    "k": _array(7, 3, 5, 9, seed=1),
    "factor": np.array(0.3, np.float32),
    "bias": _array(3, 9, 9).astype(np.float32),
    "mask": _array(7, 1, 9, 9).astype(np.float32),
    "values": _array(7, 3, 45),
    "sizes": np.array([7, 3, 9, 5]),
}
IN_A_WINDOW = {
    "q": _array(1, 1, 30, 5),
    "k": _array(1, 1, 5, 30, seed=1),
    "factor": np.array(0.3, np.float32),
    "bias": _array(30, 1).astype(np.float32),
    "mask": _array(1, 1, 30, 30).astype(np.float32),
    "values": _array(1, 1, 150),
    "sizes": np.array([1, 1, 30, 5]),
}
"""Of one matrix rows are cut."""

CHAIN = [
    make_node("Add", ["x", "bias"], ["a"]),
    make_node("Mul", ["a", "scale"], ["b"]),
    make_node("Less", ["b", "one"], ["small"]),
    make_node("Where", ["small", "a", "row"], ["c"]),
    make_node("Relu", ["c"], ["y"]),
    make_node("Sqrt", ["scale"], ["root"]),
    make_node("Mul", ["y", "root"], ["z"]),
]
IMAGE = {
    "x": _array(3, 5, 7, 11),
    "bias": _array(5, 1, 1),
    "scale": np.abs(_array(1, 5, 1, 11)),
    "one": np.array(0.25, np.float16),
    "row": _array(11),
}


def _small(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(stretches, "BLOCK", size)
    monkeypatch.setattr(blocks, "PART", size)


def _alike(found: list[BodyOutput], right: list[BodyOutput]) -> bool:
    return all(
        np.array_equal(a.value, b.value)
        and np.array_equal(a.memory, b.memory)
        and np.allclose(a.tolerance, b.tolerance, rtol=1e-12, atol=0.0)
        for a, b in zip(found, right, strict=True)
    )


@pytest.mark.parametrize("size", [1, 4, 50, 100])
@pytest.mark.parametrize(
    ("nodes", "arrays", "outputs"),
    [
        (CHAIN, IMAGE, ["z", "y"]),
        (ATTENTION, WINDOWS, ["y"]),
        (ATTENTION, WINDOWS | {"mask": _array(1, 1, 9, 9)}, ["weights", "y"]),
        (ATTENTION, IN_A_WINDOW, ["y"]),
    ],
)
def test_parts_give_what_the_whole_gives(
    nodes: list[onnx.NodeProto],
    arrays: Arrays,
    outputs: list[str],
    size: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _small(monkeypatch, size)
    cut: list[stretches.Stretch] = []

    def noted(*asked: object) -> stretches.Stretch | None:
        found = stretches.stretch(*asked)  # type: ignore[arg-type]
        cut.extend([found] if found else [])
        return found

    monkeypatch.setattr(body, "cut_of_chain", lambda *_: None)  # the whole body is not cut
    monkeypatch.setattr(body, "stretch", lambda *_: None)
    right = _evaluated(nodes, arrays, outputs)
    monkeypatch.setattr(body, "stretch", noted)
    assert _alike(_evaluated(nodes, arrays, outputs), right)
    assert cut
    assert all(len(each.blocks) > 1 for each in cut)


@pytest.mark.parametrize(("nodes", "arrays"), [(CHAIN, IMAGE), (ATTENTION, WINDOWS)])
@pytest.mark.parametrize("fault", ["a part of another place", "an error that is lost"])
def test_what_is_put_together_wrongly_is_seen(
    nodes: list[onnx.NodeProto], arrays: Arrays, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison above can fail."""
    _small(monkeypatch, 50)
    monkeypatch.setattr(body, "cut_of_chain", lambda *_: None)
    right = _evaluated(nodes, arrays, ["y"])
    put: Callable[..., None] = stretches._Whole.put

    def wrong(self: stretches._Whole, at: stretches.Block, ball: stretches.Ball) -> None:
        if fault == "an error that is lost":
            put(self, at, stretches.Ball(ball.value))
        elif at[0].start != 1:
            put(self, at, ball)
        else:
            put(self, at, stretches.Ball(ball.value[..., ::-1], ball.error))

    monkeypatch.setattr(stretches._Whole, "put", wrong)
    assert not _alike(_evaluated(nodes, arrays, ["y"]), right)


@pytest.mark.parametrize(
    ("node", "operands"),
    [
        (make_node("MatMul", ["a", "b"], ["y"]), [_array(40, 30), _array(30, 20)]),
        (make_node("MatMul", ["a", "b"], ["y"]), [_array(1, 40, 30), _array(1, 30, 20)]),
        (make_node("MatMul", ["a", "b"], ["y"]), [_array(4, 40, 30), _array(4, 3, 30, 20)]),
        (make_node("Softmax", ["a"], ["y"]), [_array(40, 30)]),
    ],
)
def test_what_is_not_computed_row_by_row_is_evaluated_as_a_whole(
    node: onnx.NodeProto, operands: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    _small(monkeypatch, 1)
    known = {n: stretches.Ball(a) for n, a in zip(node.input, operands, strict=True)}
    assert stretches.stretch([node], 0, known) is None


def test_what_is_small_is_evaluated_as_a_whole() -> None:
    known = {"x": stretches.Ball(_array(3, 50))}
    assert stretches.stretch([make_node("Relu", ["x"], ["y"])], 0, known) is None


SCORES = make_node("MatMul", ["q", "k"], ["s"])


@pytest.mark.parametrize(
    "node",
    [
        make_node("Softmax", ["s"], ["y"], axis=2),
        make_node("Softmax", ["s"], ["y"]),
        make_node("MatMul", ["v", "s"], ["y"]),
        make_node("MatMul", ["s", "s"], ["y"]),
        make_node("MatMul", ["s", "mask"], ["y"]),
        make_node("Add", ["s", "k"], ["y"]),
        make_node("Add", ["s", "more"], ["y"]),
        make_node("Transpose", ["s"], ["y"], perm=[0, 1, 3, 2]),
        make_node("Relu", ["v"], ["y"]),
    ],
)
def test_a_stretch_ends_in_front_of_what_mixes_rows(
    node: onnx.NodeProto, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part has some rows of what one node reads, and matrices of what another does, but not both of one tensor."""
    _small(monkeypatch, 1)
    shapes = {
        "q": (2, 3, 7, 7),
        "k": (2, 3, 7, 7),
        "v": (2, 3, 7, 7),
        "mask": (2, 1, 7, 7),
        "more": (5, 2, 3, 7, 7),
    }
    known = {name: stretches.Ball(_array(*shape)) for name, shape in shapes.items()}
    masked = make_node("Add", ["s", "mask"], ["s"])
    found = stretches.stretch([SCORES, masked, node], 0, known)
    assert found is not None
    assert found.behind == 2
    assert set(found.matrices) == {"k"}


def test_nodes_between_a_product_and_what_it_feeds_come_before() -> None:
    found = stretches.by_products([*ATTENTION])
    names = [node.output[0] for node in found]
    assert names[:2] == ["v", "scores"]
    assert names[2:] == [n.output[0] for n in ATTENTION[1:] if n.output[0] != "v"]
