"""Attention, softmax, reductions and element-wise work as cuDNN's graphs, and refusals of the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from support.numbers.reductions import reduction_case
from support.problems.cudnn_problems import (
    CAPPED,
    KEYS,
    SCALED,
    attentions,
    elementwise,
    reductions,
    softmaxes,
    with_scores,
)

from wpk.dtypes import ASKED, DType, Precision
from wpk.emulator import Emulator
from wpk.expression import Acc, Expression, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.libraries import NumpyLibraries, find_library
from wpk.libraries.cudnn_description import (
    AttentionNode,
    Description,
    GraphTensor,
    PointwiseNode,
    ReductionNode,
    SoftmaxNode,
)
from wpk.libraries.cudnn_pointwise import PointwiseCall, PointwiseTensor
from wpk.libraries.cudnn_problems import describe
from wpk.libraries.definition import define
from wpk.libraries.reference import worst_error
from wpk.problems import Elementwise, Gather, Pad, Pooling, Problem, Resize, Tensor
from wpk.problems.movement import NearestMode, PadMode, ResizeCoordinates, ResizeMode
from wpk.problems.pooling import PoolKind

FP16 = DType.FP16
ATTENTION = attentions(Precision.FP16)["scaled"]


def _one(problem: Problem) -> Description:
    (description,) = describe(problem)
    return description


def test_heads_and_rows_of_attention_are_strides() -> None:
    description = _one(attentions(Precision.FP16)["wide values"])
    assert description.node == AttentionNode(0.125, False, ())
    assert description.inputs == (
        GraphTensor((2, 3, 33, 64), (33 * 192, 64, 192, 1), FP16),
        GraphTensor((2, 3, 57, 64), (57 * 192, 64, 192, 1), FP16),
        GraphTensor((2, 3, 57, 96), (57 * 288, 96, 288, 1), FP16),
    )
    assert description.output == GraphTensor((2, 3, 33, 96), (33 * 288, 96, 288, 1), FP16)
    assert description.operands == 0


@pytest.mark.parametrize(
    ("expression", "scale", "biased"),
    [
        (Acc(), 1.0, False),
        (SCALED, 0.125, False),
        (apply("Mul", Scalar(0.5), Acc()), 0.5, False),
        (apply("Div", Acc(), Scalar(8.0)), 0.125, False),
        (apply("Add", SCALED, Operand(0)), 0.125, True),
        (apply("Add", Operand(0), SCALED), 0.125, True),
    ],
)
def test_a_scale_and_a_bias_are_the_nodes_own(
    expression: Expression, scale: float, biased: bool
) -> None:
    bias = (Tensor(DType.FP32, (KEYS, 0, 0, 1)),) if biased else ()
    description = _one(with_scores(ATTENTION, expression, *bias))
    assert description.node == AttentionNode(scale, biased, ())
    assert [each.dims for each in description.inputs[3:]] == [(2, 1, 1, KEYS)] * biased


def test_other_scores_are_steps_over_the_products() -> None:
    node = _one(with_scores(ATTENTION, CAPPED)).node
    assert isinstance(node, AttentionNode)
    assert [step.method for step in node.scores] == ["mul", "tanh", "mul"]
    bias = Tensor(FP16, (KEYS, 0, 0, 1))
    scaled_after = apply("Mul", apply("Add", Acc(), Operand(0)), Scalar(0.5))
    node = _one(with_scores(ATTENTION, scaled_after, bias)).node
    assert isinstance(node, AttentionNode)
    assert node.scores[0] == PointwiseCall("add", (PointwiseTensor(0), PointwiseTensor(1)))


def test_shared_heads_of_keys_and_values_are_fewer_extents() -> None:
    description = _one(attentions(Precision.FP16)["shared heads"])
    assert [tensor.dims[1] for tensor in description.inputs] == [6, 2, 2]
    assert description.output.dims[1] == 6


def test_only_strict_fp32_attention_is_strict() -> None:
    for precision in ASKED:
        strict = _one(attentions(precision)["scaled"]).strict
        assert strict == (precision is Precision.FP32)


def test_softmax_keeps_its_axes_and_has_four() -> None:
    both = softmaxes(FP16)
    assert _one(both["log softmax"]).node == SoftmaxNode(log=True)
    assert _one(both["softmax"]).inputs[0].dims == (2, 3, 5, KEYS)
    scaled = _one(both["softmax, scaled"])
    assert [each.dims for each in scaled.inputs] == [(1, 1, 7, KEYS), (1, 1, 1, KEYS)]
    assert (scaled.operands, [step.method for step in scaled.steps]) == (1, ["mul"])


def test_reduced_axes_have_extent_one() -> None:
    found = reductions(FP16)
    pixels = _one(found["mean of pixels, biased"])
    assert pixels.node == ReductionNode("AVG", ())
    assert pixels.inputs[0] == GraphTensor((3, 24, 7, 5), (840, 1, 120, 24), FP16)
    assert pixels.inputs[1].dims == (1, 24, 1, 1)
    assert pixels.output == GraphTensor((3, 24, 1, 1), (24, 1, 1, 1), FP16)
    squares = _one(found["sum of squares"])
    assert squares.node == ReductionNode(
        "ADD", (PointwiseCall("mul", (PointwiseTensor(1), PointwiseTensor(1))),)
    )
    assert (squares.operands, squares.steps) == (0, ())


def test_element_wise_work_is_steps_alone() -> None:
    found = elementwise(FP16)
    add = _one(found["add"])
    assert (add.node, add.operands) == (PointwiseNode(), 2)
    assert [each.dims for each in add.inputs] == [(1, 7, 3, 5), (1, 7, 1, 1)]
    assert [step.method for step in add.steps] == ["add", "relu"]
    assert _one(found["transpose"]).steps == (PointwiseCall("identity", (PointwiseTensor(1),)),)


@pytest.mark.parametrize(
    ("shape", "strides", "dims"),
    [
        ((9,), (1,), (1, 9, 1, 1)),
        ((5, 9), (9, 1), (1, 9, 5, 1)),
        ((5, 9), (1, 5), (1, 5, 9, 1)),
        ((2, 3, 4, 5), (60, 1, 15, 3), (2, 3, 4, 5)),
        ((2, 3, 4, 5), (60, 20, 5, 1), (2, 5, 3, 4)),
        ((2, 3, 4, 5, 6), (360, 120, 30, 6, 1), (2, 6, 3, 4, 5)),
    ],
)
def test_neighbours_in_memory_are_the_channels_of_element_wise_work(
    shape: tuple[int, ...], strides: tuple[int, ...], dims: tuple[int, ...]
) -> None:
    tensor = Tensor(FP16, strides)
    problem = Elementwise(Extent(shape[0]), shape, Operand(0), (tensor,), tensor)
    description = _one(problem)
    assert description.output.dims == dims
    assert description.inputs == (description.output,)
    assert description.output.strides[1] == 1


_X = Tensor(FP16, (64, 16, 4, 1))
_SIZES = (Extent(2), 4, 4, 4)
REFUSED: dict[str, Problem] = {
    "which its Python frontend does not offer": Pooling(
        *(PoolKind.MAX, *_SIZES, 2, 2, (2, 2), (2, 2), (1, 1), (0, 0), (0, 0), False, _X, _X),
        ATTENTION.scores,
    ),
    "resizes by resampling": Resize(
        *(ResizeMode.NEAREST, ResizeCoordinates.ASYMMETRIC, NearestMode.FLOOR, *_SIZES),
        *(8, 8, (2.0, 2.0), _X, _X),
    ),
    "have no gather": Gather(
        Extent(1), 9, Extent(5), 8, *(Tensor(FP16, (72, 8, 1)), Tensor(DType.INT64, (0, 1)), _X)
    ),
    "pad inside convolutions only": Pad(
        Extent(2), (2, 3), (2, 5), (0, 1), PadMode.CONSTANT, 0.0, _X, _X
    ),
    "its keys are fp32": replace(ATTENTION, k=Tensor(DType.FP32, ATTENTION.k.strides)),
    "of its values do not follow": replace(ATTENTION, v=Tensor(FP16, (12288, 4096, 1, 64))),
    "its keys are the same for the whole batch": replace(
        ATTENTION, k=Tensor(FP16, (0, 64, 192, 1))
    ),
    "queries are the same for all heads": replace(ATTENTION, q=Tensor(FP16, (64, 0, 192, 1))),
    "which cuDNN does not promise": replace(
        attentions(Precision.FP16)["biased by a key"], empty_rows_are_zero=True
    ),
    "operand of its epilogue is bool": with_scores(
        ATTENTION, apply("Add", Acc(), Operand(0)), Tensor(DType.BOOL, (KEYS, 0, 0, 1))
    ),
    "its size batch is free": replace(ATTENTION, batch=(Extent(2, "batch"), 3)),
    "before the softmax": replace(softmaxes(FP16)["softmax"], prologue=apply("Abs", Operand(0))),
    "it has 6 axes": replace(
        reductions(FP16)["sum"],
        outer=(2, 2, 2),
        inner=(2, 2, 2),
        inputs=(Tensor(FP16, (32, 16, 8, 4, 2, 1)),),
        y=Tensor(FP16, (4, 2, 1)),
    ),
    "an input of it is int64": replace(
        elementwise(FP16)["cast"], inputs=(Tensor(DType.INT64, (35, 7, 1)),)
    ),
    "its output is int8": replace(elementwise(FP16)["cast"], y=Tensor(DType.INT8, (35, 7, 1))),
    "zeros after every row": replace(
        elementwise(FP16)["add"], y=Tensor(FP16, (40, 8, 1), padding=1)
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refuses_with_a_reason(reason: str) -> None:
    assert reason in (find_library("cuDNN").why_not(REFUSED[reason]) or "")
    with pytest.raises(ValueError, match=reason):
        find_library("cuDNN").constant_layout(REFUSED[reason], (("graph", 0),))


def _narrow(array: NDArray[np.float64], problem: Problem) -> NDArray[np.float64]:
    return array.astype(problem.y.dtype.numpy).astype(np.float64)


@pytest.mark.parametrize("dtype", [FP16, DType.BF16, DType.FP32])
def test_rounded_definitions_lie_within_the_bounds_and_wrong_ones_do_not(dtype: DType) -> None:
    for name, problem in (softmaxes(dtype) | reductions(dtype) | elementwise(dtype)).items():
        case = reduction_case(problem, seed=1)
        result = _narrow(define(problem, case.operands), problem)
        assert worst_error(result, case) <= 1.0, name
        result.flat[0] += 2 * case.allowed.flat[0]
        assert worst_error(result, case) > 1.0, name


@pytest.mark.parametrize("name", attentions(Precision.FP16))
def test_the_cpu_computes_attention_with_strides_by_its_definition(name: str) -> None:
    from wpk.execution import BoundCall, LibraryImage
    from wpk.libraries.memory import places

    problem = attentions(Precision.FP16)[name]
    rng, device = np.random.default_rng(2), Emulator(libraries=NumpyLibraries())
    image = LibraryImage("cuDNN", "9.0.0", problem, (("graph", 0), ("engine", 0)))
    device.load(image)
    *inputs, output = places(problem, None)
    given, pointers = [], []
    for place in (*inputs, output):
        memory = np.zeros(place.bytes, np.uint8)
        given.append(rng.standard_normal(place.shape).astype(place.tensor.dtype.numpy))
        place.view(memory)[...] = given[-1]
        pointers.append(device.allocate(memory.nbytes))
        device.write(pointers[-1], memory)
    device.launch(BoundCall(image.digest, tuple(pointers), 0))
    found = output.view(device.read(pointers[-1], output.bytes)).astype(np.float64)
    q, k, v, *bias = (each.astype(np.float64) for each in given[:-1])
    k, v = (each.repeat(problem.sharing or 1, axis=1) for each in (k, v))
    scores = np.einsum("bhid,bhjd->bhij", q, k) * 0.125
    scores = 5 * np.tanh(scores) if name == "capped" else scores + sum(bias)
    p = np.exp(scores)
    wanted = np.einsum("bhij,bhjd->bhid", p / p.sum(-1, keepdims=True), v)
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=1e-4)
