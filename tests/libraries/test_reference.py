"""The reference agrees with ONNX Runtime, and its tolerance tells right from wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from subjects.problems import channels_first, convolution
from support.problems.attentions import attention
from support.problems.feed_forwards import feed_forward

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.libraries import random_case
from wpk.libraries.reference import worst_error
from wpk.problems import ClampedConvolution, Convolution, Epilogue, Matmul, Normalisation, Tensor
from wpk.problems.normalisation import NormKind


def _onnxruntime(problem: Convolution, pads: tuple[int, ...], *operands: NDArray[Any]) -> Any:
    settings = {"strides": problem.stride, "dilations": problem.dilation, "group": problem.groups}
    op = "ConvTranspose" if problem.transposed else "Conv"
    node = helper.make_node(op, ["x", "w"], ["y"], pads=pads, **settings)
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (*zip("xw", (each.shape for each in operands), strict=True), ("y", None))
    ]
    graph = helper.make_graph([node], "one", ports[:2], ports[2:])
    opset = helper.make_opsetid("", 17)
    model = helper.make_model(graph, ir_version=8, opset_imports=[opset])
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(zip("xw", operands, strict=True)))[0]


def _convolution(c: int = 6, k: int = 4, **given: Any) -> Convolution:
    """Two images with their channels first."""
    plain = {"n": 2, "precision": Precision.FP32, "layout": channels_first, **given}
    return convolution(c, k, (8, 7), **plain)


@pytest.mark.parametrize(
    ("changes", "pads"),
    [
        ({}, (1, 1, 1, 1)),
        ({}, (0, 2, 1, 0)),
        ({"stride": (2, 3)}, (1, 1, 1, 1)),
        ({"dilation": (2, 2)}, (2, 2, 2, 2)),
        ({"groups": 2}, (1, 1, 1, 1)),
        ({"transposed": True, "stride": (2, 2)}, (1, 1, 1, 1)),
        ({"transposed": True, "groups": 2}, (0, 1, 1, 1)),
    ],
)
def test_convolutions_agree_with_onnxruntime(
    changes: dict[str, Any], pads: tuple[int, int, int, int]
) -> None:
    problem = _convolution(pads=pads, **changes)
    case = random_case(problem, 0)
    assert worst_error(_onnxruntime(problem, pads, *case.operands), case) <= 1.0


def test_products_broadcast_and_batch() -> None:
    dtype = DType.FP32
    problem = Matmul(
        *(Precision.FP32, (Extent(2), 3), Extent(5), 7, 11, Tensor(dtype, (165, 55, 11, 1))),
        *(Tensor(dtype, (0, 77, 7, 1)), False, Tensor(dtype, (105, 35, 7, 1)), Epilogue()),
    )
    case = random_case(problem, 0)
    a, b = (each.astype(np.float64) for each in case.operands)
    assert b.shape == (1, 3, 11, 7)
    np.testing.assert_allclose(case.output, np.einsum("abmk,abkn->abmn", a, np.repeat(b, 2, 0)))


@pytest.mark.parametrize("kind", [NormKind.LAYER, NormKind.RMS])
def test_normalised_rows_in_fp32_are_right(kind: NormKind) -> None:
    rows = Tensor(DType.FP32, (64, 1))
    vector = Tensor(DType.FP32, (0, 1))
    epilogue = Epilogue(apply("Mul", Acc(), Operand(0)), (vector,))
    problem = Normalisation(kind, Extent(9), (9,), 64, 1e-5, Operand(0), (rows,), rows, epilogue)
    case = random_case(problem, 0)
    x, scale = case.operands
    d = x - x.mean(axis=-1, keepdims=True) if kind is NormKind.LAYER else x
    y = d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + np.float32(1e-5)) * scale
    assert y.dtype == np.float32
    assert worst_error(y, case) <= 1.0


def test_rows_of_several_lines_are_one_row() -> None:
    """The pixels and channels of a group, in images whose channels are neighbours."""
    images, of_channels = Tensor(DType.FP32, (60, 4, 12, 1)), Tensor(DType.FP32, (0, 4, 0, 1))
    epilogue = Epilogue(apply("Mul", Acc(), Operand(0)), (of_channels,))
    shape = (NormKind.LAYER, Extent(2), (2, 3), 4, 1e-5, Operand(0), (images,), images, epilogue)
    problem = Normalisation(*shape, lines=5)
    for each in (problem, *problem.odd_siblings()):
        case = random_case(each, 0)
        x, scale = case.operands
        assert x.shape == (*each.outer, *each.row)
        d = x - x.mean(axis=(-2, -1), keepdims=True)
        y = d / np.sqrt((d * d).mean(axis=(-2, -1), keepdims=True) + np.float32(1e-5)) * scale
        assert worst_error(y, case) <= 1.0
        lines = x - x.mean(axis=-1, keepdims=True)
        y = lines / np.sqrt((lines * lines).mean(axis=-1, keepdims=True)) * scale
        assert worst_error(y, case) > 1.0


def test_fp32_sums_are_right_and_tf32_ones_wrong() -> None:
    problem = _convolution(c=64, relu=True)
    case = random_case(problem, 0)
    pads = (1, 1, 1, 1)
    exact = _onnxruntime(problem, pads, *case.operands)
    assert worst_error(np.maximum(exact, 0), case) <= 1.0
    cut = [(each.view(np.uint32) & 0xFFFFE000).view(np.float32) for each in case.operands]
    tf32 = np.maximum(_onnxruntime(problem, pads, *cut), 0)
    assert worst_error(tf32, case) > 1.0
    assert worst_error(tf32, random_case(replace(problem, precision=Precision.TF32), 0)) <= 1.0


def test_one_wrong_element_is_noticed() -> None:
    case = random_case(_convolution(), 0)
    for value in (np.nan, np.inf, 1.01 * case.output[1, 2, 3, 4] + 0.01):
        result = case.output.copy()
        result[1, 2, 3, 4] = value
        assert worst_error(result, case) > 1.0


def test_seeds_differ() -> None:
    one, other = (random_case(_convolution(), seed) for seed in (0, 1))
    assert not np.array_equal(one.operands[0], other.operands[0])


@pytest.mark.parametrize("kind", [NormKind.SOFTMAX, NormKind.LOG_SOFTMAX])
def test_softmax_of_a_sum_in_fp32_is_right_and_of_one_term_wrong(kind: NormKind) -> None:
    rows, total = Tensor(DType.FP32, (64, 1)), apply("Add", Operand(0), Operand(1))
    shape = (kind, Extent(9), (9,), 64, 0.0, total)
    case = random_case(Normalisation(*shape, (rows, rows), rows, Epilogue()), 0)
    a, b = case.operands
    for x, right in ((a + b, True), (a, False)):
        below = x - x.max(axis=-1, keepdims=True)
        total_of_row = np.exp(below).sum(axis=-1, keepdims=True)
        softmax = kind is NormKind.SOFTMAX
        y = np.exp(below) / total_of_row if softmax else below - np.log(total_of_row)
        assert y.dtype == np.float32
        assert (worst_error(y, case) <= 1.0) is right


def test_limits_hold_the_input_of_a_clamped_convolution() -> None:
    plain = _convolution()
    fields = {name: getattr(plain, name) for name in plain.__dataclass_fields__}
    limit = Tensor(DType.FP32, (0, 1, 0, 0))
    case = random_case(ClampedConvolution(**fields, lower=limit, upper=limit), 0)
    x, w, lower, upper = case.operands
    assert (lower <= upper).all()
    kept = np.minimum(np.maximum(x, lower), upper)
    assert worst_error(_onnxruntime(plain, (1, 1, 1, 1), kept, w), case) <= 1.0
    assert worst_error(_onnxruntime(plain, (1, 1, 1, 1), x, w), case) > 1.0


def test_scores_that_a_mask_replaces_allow_no_more_than_others() -> None:
    masked = apply("Where", Operand(0), Acc(), Scalar(-1e9))
    problem = attention(17, 19, 8, precision=Precision.FP32, batch=(1, 2))
    mask = Tensor(DType.BOOL, (0, 0, 19, 1), alignment=1)
    case = random_case(replace(problem, scores=Epilogue(masked, (mask,))), 0)
    q, k, v, seen = case.operands
    scores = np.where(seen, q @ k.swapaxes(-1, -2), np.float32(-1e9))
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    y = weights / weights.sum(axis=-1, keepdims=True) @ v
    assert worst_error(y, case) <= 1.0
    assert worst_error(y * 1.001, case) > 1.0


def test_hidden_rows_are_rounded_once_and_no_coarser() -> None:
    problem = feed_forward(64, 48, 96, norm=NormKind.LAYER, activation="relu")
    case = random_case(problem, 0)
    x, up, down, bias, _, shift, residual = (each.astype(np.float64) for each in case.operands)
    d = x - x.mean(axis=-1, keepdims=True)
    rows = d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + 1e-5)
    hidden = np.maximum(rows @ up[:, :48].T + bias, 0)
    assert worst_error((hidden @ down[:, :48] + shift + residual).astype(np.float16), case) <= 1.0
    kept = hidden.astype(np.float16).astype(np.float64)
    assert worst_error((kept @ down[:, :48] + shift + residual).astype(np.float16), case) <= 1.0
    coarse = np.round(hidden * 2**5) / 2**5
    assert worst_error((coarse @ down[:, :48] + shift + residual).astype(np.float16), case) > 1.0
