"""Problems of every kind: honest ones are taken, and each field is held to what it may say."""

from dataclasses import fields, replace
from functools import cache
from math import inf, nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx
import pytest
from support.networks import one_operator
from support.networks.drawn_weights import parse_model
from support.problems.feed_forwards import feed_forward

from wpk.dtypes import DType, Precision
from wpk.errors import PlanError
from wpk.expression import Acc, Operand, apply
from wpk.extent import MAX_SIZE, Extent
from wpk.lowering.model import lower_model
from wpk.plan.checks.problems import MAX_LEAVES, check_problem
from wpk.plan.checks.work import MAX_OPERATIONS, check_work
from wpk.problems import (
    ClampedConvolution,
    Convolution,
    Epilogue,
    NormKind,
    Pad,
    Problem,
    Reduction,
    Resize,
    RowNorm,
    Tensor,
)

MODELS = {
    "convolution": (one_operator.FIRST, "w"),
    "depthwise": (one_operator.DEPTHWISE, "w"),
    "product": (one_operator.PRODUCT, "w"),
    "attention": (one_operator.ATTENTION, "a b c"),
    "squeeze": (one_operator.SQUEEZED, "d u"),
    "pooling": (one_operator.POOL, ""),
    "reduction": (one_operator.SUM, ""),
    "normalisation": (one_operator.ROWS, ""),
    "elements": (one_operator.TURNED, ""),
    "gather": (one_operator.PICKED, "w"),
    "picked": (one_operator.PICKED_EACH, ""),
    "written": (one_operator.WRITTEN, ""),
    "sums": (one_operator.SUMS, ""),
    "first": (one_operator.FIRST_OF_ROWS, ""),
    "ranked": (one_operator.RANKED, ""),
    "pad": (one_operator.PADDED, ""),
    "resize": (one_operator.RESIZED, ""),
}


@cache
def problem(name: str) -> Problem:
    """The last problem that a model lowers to."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(parse_model(*MODELS[name]), path)
        return lower_model(path, {}, Precision.FP32).program.operators[-1].problem


def changed(name: str, **fields: Any) -> Problem:
    return replace(problem(name), **fields)


FEED_FORWARD = feed_forward(70, 48, 72, norm=NormKind.LAYER)
"""Which passes make where it is chosen, of 16 bits."""


def test_a_feed_forward_block_is_taken() -> None:
    check(FEED_FORWARD)
    check_work(FEED_FORWARD, {"n": 1}, "problem")


SUMS = Tensor(DType.FP32, (0, 1))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"k": 40}, r"problem.up.strides: .* rows have 40 elements"),
        ({"n": 40}, r"problem.down.strides: .* rows have 40 elements"),
        ({"precision": Precision.FP32}, r"problem.precision: fp32; hidden rows"),
        ({"precision": Precision.BF16}, r"problem.x.dtype: fp16 in a product of bf16"),
        ({"hidden": Epilogue(apply("Add", Acc(), Operand(0)), ())}, r"hidden: reads operand 0"),
        (
            {"hidden": Epilogue(Operand(0), (Tensor(DType.FP16, (72, 1)),))},
            r"problem.hidden: an operand that differs from row to row",
        ),
        ({"norm": RowNorm(NormKind.LAYER, 1e-5, None)}, r"problem.norm.sums: none behind"),
        ({"norm": RowNorm(NormKind.RMS, 1e-5, SUMS)}, r"problem.norm.sums: some behind"),
        ({"norm": RowNorm(NormKind.SOFTMAX, 1e-5, None)}, r"problem.norm.kind: softmax"),
        ({"norm": RowNorm(NormKind.LAYER, nan, SUMS)}, r"problem.norm.epsilon: is not a number"),
        (
            {"norm": RowNorm(NormKind.LAYER, 1e-5, Tensor(DType.FP16, (0, 1)))},
            r"problem.norm.sums: .* they are fp32",
        ),
    ],
)
def test_what_a_feed_forward_block_may_not_say_is_refused(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        check(replace(FEED_FORWARD, **fields))


def check(one: Any) -> None:
    check_problem(one, {"n": 1}, "problem")


@pytest.mark.parametrize("name", MODELS)
def test_what_lowering_makes_is_taken(name: str) -> None:
    check(problem(name))
    check_work(problem(name), {"n": 1}, "problem")


SUMMED = Epilogue(apply("Add", Acc(), Operand(0)), ())


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("depthwise", {"groups": 3}, r"problem.c: 20 in 3 groups"),
        ("depthwise", {"groups": 20, "k": 30}, r"problem.k: 30 in 20 groups"),
        ("depthwise", {"groups": 0}, r"problem.groups: 0 is not within 1"),
        ("convolution", {"pad": (-MAX_SIZE - 1, 0)}, r"problem.pad: -2147483648 is not within"),
        ("convolution", {"stride": (2, 0)}, r"problem.stride: 0 is not within 1"),
        ("convolution", {"h": MAX_SIZE + 1}, r"problem.h: 2147483648 is not within"),
        ("convolution", {"n": Extent(1, "m")}, r"problem.n.free: no dimension is called 'm'"),
        ("convolution", {"epilogue": SUMMED}, r"problem.epilogue: reads operand 0"),
        ("product", {"batch": (Extent(1), 0)}, r"problem.batch: 0 is not within 1"),
        (
            "product",
            {"batch": (Extent(1, "n"), 1), "m": Extent(2, "n", 2)},
            r"'n' decides more than what kernels are passed",
        ),
        ("attention", {"scores": SUMMED}, r"problem.scores: reads operand 0"),
        ("attention", {"keys": 0}, r"problem.keys: 0"),
        ("squeeze", {"gates": SUMMED}, r"problem.gates: reads operand 0"),
        ("squeeze", {"places": 9}, r"problem.places: 20 gates scale 9 places"),
        ("squeeze", {"c": 33}, r"problem.places"),
        ("squeeze", {"hidden_size": 9}, r"problem.up.strides: .* rows have 16 elements"),
        (
            "squeeze",
            {"precision": Precision.FP16},
            r"problem.down.dtype: fp32 in a product of fp16",
        ),
        ("pooling", {"epilogue": SUMMED}, r"problem.epilogue: reads operand 0"),
        ("pooling", {"pad": (0, MAX_SIZE - 2)}, r"problem.pad: 2147483645 is not within"),
        ("pooling", {"pad_end": (MAX_SIZE - 2, 0)}, r"problem.pad: 2147483645 is not within"),
        ("reduction", {"outer": (6,)}, r"problem.outer: \(6,\) does not begin"),
        ("reduction", {"prologue": Operand(1)}, r"problem.prologue: reads operand 1"),
        ("reduction", {"prologue": Acc()}, r"problem.prologue"),
        ("normalisation", {"outer": ()}, r"problem.outer: \(\) does not begin"),
        ("normalisation", {"epsilon": nan}, r"problem.epsilon: is not a number"),
        ("elements", {"shape": (44, 39)}, r"problem.shape: \(44, 39\) does not begin"),
        ("pad", {"x_shape": (3, 5, 5, 7)}, r"problem.x_shape: .* does not begin"),
        ("pad", {"y_shape": (1, 5, 8, 9)}, r"problem.y_shape: .* does not begin"),
        ("pad", {"begin": (0, 0, 1)}, r"problem.begin: shapes and begin have different ranks"),
        ("pad", {"begin": (1, 0, 1, 2)}, r"problem.begin: 1 along the leading axis"),
        ("resize", {"scale": (2.0, 0.0)}, r"problem.scale: 0.0 is no scale"),
        ("resize", {"scale": (-2.0, 2.0)}, r"problem.scale: -2.0 is no scale"),
        ("resize", {"scale": (2.0, inf)}, r"problem.scale: inf is no scale"),
        ("resize", {"scale": (nan, 2.0)}, r"problem.scale: is not a number"),
    ],
)
def test_what_a_kind_may_not_say_is_refused(
    name: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        check(changed(name, **fields))


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("convolution", {"pad": (-MAX_SIZE, 0)}),
        ("convolution", {"n": Extent(1, "n")}),
        ("pooling", {"pad": (0, MAX_SIZE - 3), "pad_end": (-5, 0)}),
        ("pad", {"begin": (0, -1, 1, 2)}),
        ("resize", {"scale": (0.25, 1e-3)}),
    ],
)
def test_what_is_unusual_is_taken(name: str, fields: dict[str, Any]) -> None:
    check(changed(name, **fields))


def test_a_clamped_convolution_pads_nothing() -> None:
    plain = problem("convolution")
    assert isinstance(plain, Convolution)
    given = {field.name: getattr(plain, field.name) for field in fields(plain)} | {"pad": (0, 0)}
    limit = replace(plain.x, strides=(0, 1, 0, 0), alignment=4)
    clamped = ClampedConvolution(**given, lower=limit, upper=None)
    check(clamped)
    for pad in ((1, 0), (0, 1)):
        with pytest.raises(PlanError, match=r"problem.pad: .*; a clamped convolution has none"):
            check(replace(clamped, pad=pad))


def _reduction(**tensor: Any) -> Problem:
    base = problem("reduction")
    assert isinstance(base, Reduction)
    return replace(base, inputs=(replace(base.inputs[0], **tensor),))


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        ({"strides": (2**40 + 1, 1)}, r"operand 0.strides: 1099511627777 is not within"),
        (
            {"strides": (46, 1), "alignment": 16},
            r"operand 0.alignment: 16 bytes, with a stride of 46",
        ),
        ({"alignment": 3}, r"operand 0.alignment: 3 bytes"),
        ({"alignment": 2}, r"operand 0.alignment: 2 bytes for fp32"),
        ({"alignment": 32}, r"operand 0.alignment: 32 bytes"),
        ({"padding": 2**20 + 1}, r"operand 0.padding"),
        ({"padding": -1}, r"operand 0.padding: -1 is not within 0"),
    ],
)
def test_a_tensor_that_no_kernel_reads_is_refused(tensor: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        check(_reduction(**tensor))


@pytest.mark.parametrize(
    "tensor",
    [
        {"strides": (2**40, 1)},
        {"strides": (0, 1), "alignment": 16},
        {"strides": (48, 1), "alignment": 16},
        {"padding": 2**20},
        {"dtype": DType.FP16, "alignment": 2},
    ],
)
def test_a_tensor_at_its_limits_is_taken(tensor: dict[str, Any]) -> None:
    check(_reduction(**tensor))


def test_a_tensor_of_fp64_is_one_of_kinds_that_compute_in_it() -> None:
    wide = Tensor(DType.FP64, (1, 1, 1, 1), alignment=8)
    with pytest.raises(PlanError, match="operand 0: is fp64, which no kernel of this kind takes"):
        check(changed("convolution", x=wide))
    check(changed("reduction", inputs=(Tensor(DType.FP64, (40, 1), alignment=8),)))


def test_a_product_of_fp64_is_one_in_its_epilogue_too() -> None:
    with pytest.raises(PlanError, match="computed in fp32, behind a product of fp64"):
        check(changed("product", precision=Precision.FP64))


def _sum_of(leaves: int) -> Any:
    expression: Any = Operand(0)
    level = [expression] * leaves
    while len(level) > 1:
        pairs = [apply("Add", a, b) for a, b in zip(level[::2], level[1::2], strict=False)]
        level = [*pairs, *level[2 * len(pairs) :]]
    return level[0]


def test_an_expression_has_a_largest_size() -> None:
    assert MAX_LEAVES == 4096  # thousands of nodes in a chain: more than a network's longest
    check(changed("reduction", prologue=_sum_of(MAX_LEAVES)))
    with pytest.raises(PlanError, match=r"problem.prologue"):
        check(changed("reduction", prologue=_sum_of(MAX_LEAVES + 1)))


@pytest.mark.parametrize(
    ("name", "fields", "grows"),
    [
        # 2^50 terms, and one more of what grows.
        ("convolution", {"n": Extent(2**10), "k": 2**10, "p": 2**10, "q": 2**8, "c": 2**6,
                         "filter": (8, 8)}, "q"),
        ("convolution", {"n": Extent(2**10), "k": 2**10, "p": 2**10, "q": 2**8, "c": 2**6,
                         "filter": (8, 8)}, "c"),
        ("product", {"batch": (Extent(2**5), 2**5), "m": Extent(2**10), "n": 2**15, "k": 2**15}, "k"),
        ("product", {"batch": (Extent(2**5), 2**5), "m": Extent(2**10), "n": 2**15, "k": 2**15}, "n"),
        ("attention", {"batch": (Extent(2**5), 2**5), "queries": 2**15, "keys": 2**15, "depth": 2**9,
                       "width": 2**9}, "depth"),
        ("attention", {"batch": (Extent(2**5), 2**5), "queries": 2**15, "keys": 2**15, "depth": 2**9,
                       "width": 2**9}, "width"),
        ("attention", {"batch": (Extent(2**5), 2**5), "queries": 2**15, "keys": 2**15, "depth": 2**9,
                       "width": 2**9}, "queries"),
        ("attention", {"batch": (Extent(2**5), 2**5), "queries": 2**15, "keys": 2**15, "depth": 2**9,
                       "width": 2**9}, "keys"),
        ("reduction", {"leading": Extent(2**20), "outer": (2**20,), "inner": (2**30,)}, "inner"),
        ("gather", {"outer": Extent(2**10), "count": Extent(2**20), "inner": 2**20}, "inner"),
    ],
)  # fmt: skip
def test_work_is_counted_in_every_extent(name: str, fields: dict[str, Any], grows: str) -> None:
    assert MAX_OPERATIONS == 2**50
    largest = changed(name, **fields)
    check_work(largest, {}, "problem")
    was = fields[grows]
    more = (was[0] + 1,) if isinstance(was, tuple) else was + 1
    with pytest.raises(PlanError, match=r"problem, operations: .* is not within"):
        check_work(replace(largest, **{grows: more}), {}, "problem")


def test_work_of_elements_counts_what_an_expression_reads() -> None:
    base = {"leading": Extent(2**24), "shape": (2**24, 2**24)}
    check_work(changed("elements", **base, expression=_sum_of(4)), {}, "problem")
    with pytest.raises(PlanError, match="operations"):
        check_work(changed("elements", **base, expression=_sum_of(5)), {}, "problem")


def test_movement_is_counted_by_what_is_written() -> None:
    pad, resize = problem("pad"), problem("resize")
    assert isinstance(pad, Pad)
    assert isinstance(resize, Resize)
    for one in (
        replace(pad, y_shape=(2, 2**20, 2**15, 2**15)),
        replace(resize, c=2**20, p=2**15, q=2**15),
    ):
        with pytest.raises(PlanError, match="operations"):
            check_work(one, {}, "problem")
