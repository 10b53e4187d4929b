"""Nodes of every operator that lowering carries or passes rewrite, in many forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

Given = Sequence[int] | np.ndarray
"""The shape of an fp32 input, or its value."""


@dataclass(frozen=True)
class NodeCase:
    """A node and what it is given.

    Attributes:
        text: As ONNX text: ``Op<attributes>(inputs)``, the inputs being letters.
        given: Each input's shape or value, in order of its letter.
        opsets: Versions of ONNX it is written for.
        outputs: How many it has.
    """

    text: str
    given: tuple[Given, ...] = field(repr=False)
    opsets: tuple[int, ...]
    outputs: int = 1

    def node(self) -> onnx.NodeProto:
        names = ", ".join(f"y{i}" if i else "y" for i in range(self.outputs))
        model = onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["" : {self.opsets[0]}]> g (float x) => (float y)'
            f" {{ {names} = {self.text.replace('<>', '')} }}"
        )
        return model.graph.node[0]

    def inputs(self, seed: int = 0) -> list[np.ndarray | None]:
        rng = np.random.default_rng(seed)
        by_name = {}
        for letter, each in zip("abcdefg", self.given, strict=False):
            drawn = each if isinstance(each, np.ndarray) else rng.standard_normal(each)
            by_name[letter] = drawn if isinstance(each, np.ndarray) else drawn.astype(np.float32)
        return [by_name[name] if name else None for name in self.node().input]


VERSIONS = (11, 13, 18, 23)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def scalar(value: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(value, dtype)


def flags(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).random(shape) < 0.5


def case(
    text: str, *given: Given, since: int = 11, until: int = VERSIONS[-1], outputs: int = 1
) -> NodeCase:
    """A case for all versions at which its operator changed, and the first and last of the range."""
    inside = [v for v in VERSIONS if since <= v <= until]
    operator = text.split("<")[0].split("(")[0].strip()
    versions = {onnx.defs.get_schema(operator, v, "").since_version: v for v in reversed(inside)}
    chosen = sorted({*versions.values(), inside[-1]})
    return NodeCase(text, given, tuple(chosen), outputs)


def all_cases() -> Iterator[NodeCase]:
    """Every case."""
    for kinds in (
        elementwise,
        logic,
        products,
        pools,
        reductions,
        normalisations,
        movement,
        resizes,
    ):
        yield from kinds()


_SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (7,), (2, 3, 5))


def elementwise() -> Iterator[NodeCase]:
    names = "Abs Neg Exp Tanh Sigmoid Erf Sin Cos Floor Ceil Round Sign Relu Softplus Softsign"
    names += " Reciprocal Elu Selu HardSigmoid LeakyRelu Identity"
    for name in names.split():
        for shape in _SHAPES[::3]:
            yield case(f"{name}(a)", shape)
    for name in ("Log", "Sqrt"):
        yield case(f"{name}(a)", floats(0.0, 1e-30, 0.5, 1.0, 3.0, 1e30))
    for text, since in (
        ("Elu<alpha = 0.7>", 11),
        ("Selu<alpha = 1.3, gamma = 0.8>", 11),
        ("HardSigmoid<alpha = 0.3, beta = 0.4>", 11),
        ("LeakyRelu<alpha = -0.2>", 11),
        ("HardSwish", 14),
        ("Mish", 18),
        ("Gelu", 20),
        ('Gelu<approximate = "tanh">', 20),
        ("Celu<alpha = 0.6>", 12),
        ("ThresholdedRelu<alpha = 0.4>", 11),
        ("Dropout", 12),
    ):
        yield case(f"{text}(a)", (3, 7), since=since)
    yield case("Dropout<ratio = 0.3>(a)", (3, 7), until=11)
    for name in ("Add", "Sub", "Mul", "Div"):
        for left, right in (((), ()), ((3, 4), ()), ((2, 1, 4), (3, 1)), ((1,), (2, 3))):
            yield case(f"{name}(a, b)", left, right)
        yield case(f"{name}(a, b)", ints(7, -7, 7, -7), ints(2, 2, -2, -2))
    for name in ("Max", "Min", "Sum", "Mean"):
        yield case(f"{name}(a)", (2, 3))
        yield case(f"{name}(a, b, c)", (2, 3), (3,), ())
    for base, power in (
        (floats(0.5, 2.0, 3.0), floats(-1.5, 0.5, 3.0)),
        (floats(-2.0, -3.0), scalar(2.0)),
    ):
        yield case("Pow(a, b)", base, power)
    yield case("Pow(a, b)", floats(-2.0, 3.0), scalar(3, np.int64), since=12)
    yield case("Mod<fmod = 1>(a, b)", floats(5.5, -5.5, 5.5, -5.5), floats(2.0, 2.0, -2.0, -2.0))
    yield case("Mod(a, b)", ints(5, -5, 5, -5), ints(3, 3, -3, -3))
    yield case("PRelu(a, b)", (2, 3, 4), (3, 1))
    yield case("Clip(a, b, c)", (3, 5), scalar(-0.5), scalar(0.4))
    yield case("Clip(a, b)", (3, 5), scalar(-0.5))
    yield case('Clip(a, "", b)', (3, 5), scalar(0.4))
    yield case("Clip(a)", (3, 5))
    yield case("Clip(a, b, c)", (3, 5), scalar(0.5), scalar(-0.4))
    for to in (1, 2, 3, 6, 7, 9):
        yield case(f"Cast<to = {to}>(a)", floats(0.0, -0.0, 0.9, 1.5, 3.0, 99.7))
        yield case(f"Cast<to = {to}>(a)", ints(0, 1, 2, 100))
        yield case(f"Cast<to = {to}>(a)", np.array([True, False]))
    for to in (3, 6, 7):
        yield case(f"Cast<to = {to}>(a)", floats(-0.9, -1.5, -99.7))


def logic() -> Iterator[NodeCase]:
    for name in ("Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"):
        since = 12 if name.endswith("OrEqual") else 11
        yield case(
            f"{name}(a, b)",
            floats(1.0, 2.0, 3.0, np.inf),
            floats(2.0, 2.0, 2.0, np.inf),
            since=since,
        )
        yield case(f"{name}(a, b)", ints(1, 2, 3), scalar(2, np.int64), since=since)
    for name in ("And", "Or", "Xor"):
        yield case(f"{name}(a, b)", flags(2, 3, 4), flags(3, 1))
    yield case("Not(a)", flags(2, 3))
    yield case("IsNaN(a)", floats(np.nan, 1.0, np.inf), since=13)
    yield case("Where(a, b, c)", flags(2, 3), (3,), ())
    yield case("Where(a, b, c)", flags(2, 3), ints(1, 2, 3), ints(4))
    yield case("Equal(a, b)", flags(2, 3), flags(3))


def products() -> Iterator[NodeCase]:
    for left, right in (
        ((3, 5), (5, 4)),
        ((5,), (5, 4)),
        ((3, 5), (5,)),
        ((5,), (5,)),
        ((2, 3, 5), (5, 4)),
        ((2, 1, 3, 5), (3, 5, 4)),
    ):
        yield case("MatMul(a, b)", left, right)
    yield case("Gemm(a, b)", (3, 5), (5, 4))
    yield case("Gemm<alpha = 0.5, beta = -2.0, transA = 1>(a, b, c)", (5, 3), (5, 4), (3, 1))
    yield case("Gemm<transB = 1>(a, b, c)", (3, 5), (4, 5), ())
    for attributes in (
        "",
        "group = 2",
        "pads = [1, 0, 2, 1]",
        "strides = [2, 3], dilations = [2, 1]",
        'auto_pad = "SAME_UPPER", strides = [2, 2]',
        'auto_pad = "SAME_LOWER", strides = [2, 2]',
        'auto_pad = "VALID", kernel_shape = [3, 2]',
    ):
        groups = 2 if "group" in attributes else 1
        yield case(f"Conv<{attributes}>(a, b, c)", (2, 4, 7, 8), (6, 4 // groups, 3, 2), (6,))
    yield case("Conv<group = 4, pads = [1, 1]>(a, b)", (2, 4, 9), (8, 1, 3))
    yield case('Conv<auto_pad = "SAME_UPPER", strides = [2]>(a, b)', (2, 4, 9), (8, 4, 4))
    yield case("Conv<dilations = [2]>(a, b, c)", (1, 2, 9), (3, 2, 3), (3,))
    yield case("Conv(a, b)", (1, 2, 4, 5, 6), (3, 2, 2, 3, 2))
    yield from _transposed()


def _transposed() -> Iterator[NodeCase]:
    for attributes in (
        "",
        "group = 2",
        "pads = [1, 0, 0, 1], strides = [2, 3], output_padding = [1, 2]",
        "dilations = [2, 1], strides = [1, 2]",
        "strides = [2, 2], output_shape = [9, 13]",
        "strides = [2, 3], output_shape = [12, 22]",
        "strides = [2, 2], kernel_shape = [3, 2], output_shape = [11, 15]",
        'strides = [2, 2], auto_pad = "SAME_UPPER"',
        'strides = [2, 2], auto_pad = "SAME_LOWER"',
        'strides = [2, 2], auto_pad = "SAME_UPPER", output_shape = [9, 14]',
        'strides = [2, 2], auto_pad = "VALID"',
        "strides = [3, 3]",
    ):
        groups = 2 if "group" in attributes else 1
        yield case(
            f"ConvTranspose<{attributes}>(a, b, c)", (2, 6, 5, 7), (6, 4 // groups, 3, 2), (4,)
        )
    for attributes in (
        "strides = [2]",
        "strides = [2], output_shape = [13]",
        "strides = [2], output_shape = [12]",
        "strides = [2], output_shape = [14]",
        'strides = [2], auto_pad = "SAME_UPPER"',
        'strides = [2], auto_pad = "SAME_LOWER"',
        'strides = [3], auto_pad = "SAME_UPPER"',
        "strides = [2], pads = [1, 2], output_padding = [1]",
    ):
        yield case(f"ConvTranspose<{attributes}>(a, b)", (2, 6, 6), (6, 4, 3))


def pools() -> Iterator[NodeCase]:
    for name in ("MaxPool", "AveragePool"):
        for attributes in (
            "kernel_shape = [3, 2]",
            "kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]",
            "kernel_shape = [3, 3], pads = [1, 0, 2, 1], strides = [3, 2], ceil_mode = 1",
            'kernel_shape = [3, 2], auto_pad = "SAME_UPPER", strides = [2, 2]',
            'kernel_shape = [2, 3], auto_pad = "SAME_LOWER", strides = [2, 3]',
            'kernel_shape = [2, 3], auto_pad = "VALID", strides = [2, 3]',
            "kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1",
        ):
            yield case(f"{name}<{attributes}>(a)", (2, 3, 7, 8))
        for attributes in (
            "kernel_shape = [3]",
            "kernel_shape = [9]",
            "kernel_shape = [4], strides = [3], pads = [2, 1]",
            "kernel_shape = [2], strides = [2], ceil_mode = 1",
            'kernel_shape = [4], strides = [3], auto_pad = "SAME_LOWER"',
        ):
            yield case(f"{name}<{attributes}>(a)", (2, 3, 9))
        yield case(f"{name}<kernel_shape = [2, 3, 2]>(a)", (1, 2, 4, 5, 4))
    yield case("MaxPool<kernel_shape = [2, 2], dilations = [2, 3]>(a)", (2, 3, 7, 8))
    yield from regions()
    yield case("MaxPool<kernel_shape = [2, 2]>(a)", (2, 3, 7, 8), outputs=2)
    yield case(
        "MaxPool<kernel_shape = [3, 2], pads = [1, 1, 0, 0], strides = [2, 2]>(a)",
        (2, 3, 7, 8),
        outputs=2,
    )
    yield case("MaxPool<kernel_shape = [2, 2], storage_order = 1>(a)", (2, 3, 7, 8), outputs=2)
    yield case("MaxPool<kernel_shape = [3]>(a)", (2, 3, 7), outputs=2)
    yield case("AveragePool<kernel_shape = [2, 2], dilations = [2, 3]>(a)", (2, 3, 7, 8), since=20)
    for extra in ("", ", ceil_mode = 1"):
        attributes = f"kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [2, 2]{extra}"
        yield case(f"AveragePool<{attributes}, count_include_pad = 1>(a)", (2, 3, 7, 8))
    for name in ("GlobalMaxPool", "GlobalAveragePool"):
        for shape in ((2, 3, 5), (2, 3, 4, 5), (1, 2, 3, 2, 4)):
            yield case(f"{name}(a)", shape)


def regions() -> Iterator[NodeCase]:
    rois = np.random.default_rng(5).uniform(-2, 12, (4, 4)).astype(np.float32)
    for text in (
        "output_height = 2, output_width = 3",
        "output_width = 2, sampling_ratio = 2, spatial_scale = 0.3",
    ):
        yield case(
            f"RoiAlign<{text}>(a, b, c)", (2, 3, 7, 8), rois, ints(0, 1, 1, 0), since=16, until=18
        )
        half = f'{text}, coordinate_transformation_mode = "output_half_pixel", mode = "max"'
        yield case(
            f"RoiAlign<{half}>(a, b, c)", (2, 3, 7, 8), rois, ints(0, 1, 1, 0), since=16, until=18
        )
    yield case("RoiAlign(a, b, c)", (2, 3, 7, 8), rois, ints(0, 1, 1, 0), until=18)


_REDUCTIONS = "Sum Mean Max Min Prod L1 L2 SumSquare LogSum LogSumExp"


def reductions() -> Iterator[NodeCase]:
    for kind in _REDUCTIONS.split():
        x = np.random.default_rng(3).uniform(0.5, 1.5, (2, 3, 4)).astype(np.float32)
        old = 12 if kind == "Sum" else 17
        for extra in ("", ", keepdims = 0"):
            yield case(f"Reduce{kind}<axes = [1, -1]{extra}>(a)", x, until=old)
            yield case(f"Reduce{kind}<{extra[2:]}>(a, b)", x, ints(0, -1), since=old + 1)
        yield case(f"Reduce{kind}(a)", x)
        yield case(f"Reduce{kind}<keepdims = 0>(a)", x)
        yield case(f"Reduce{kind}<noop_with_empty_axes = 1>(a)", x, since=old + 1)


def normalisations() -> Iterator[NodeCase]:
    for name in ("Softmax", "LogSoftmax"):
        for axis in ("", "<axis = 1>", "<axis = 0>", "<axis = -1>", "<axis = -2>"):
            yield case(f"{name}{axis}(a)", (3, 4, 5))
        yield case(f"{name}(a)", (1, 5))
    positive = np.random.default_rng(5).uniform(0.5, 2.0, 3).astype(np.float32)
    for shape in ((2, 3), (2, 3, 5), (2, 3, 4, 5)):
        yield case("BatchNormalization(a, b, c, d, e)", shape, (3,), (3,), (3,), positive)
    yield case(
        "BatchNormalization<epsilon = 0.1, momentum = 0.8>(a, b, c, d, e)",
        (2, 3, 4),
        (3,),
        (3,),
        (3,),
        positive,
    )
    for axis in (-1, 1, -2):
        size = (4,) if axis == -1 else (3, 4)
        attributes = f"axis = {axis}, epsilon = 0.01"
        yield case(f"LayerNormalization<{attributes}>(a, b, c)", (2, 3, 4), size, size, since=17)
        yield case(f"RMSNormalization<{attributes}>(a, b)", (2, 3, 4), size, since=23)
    yield case("LayerNormalization(a, b)", (2, 3, 4), (4,), since=17)
    for shape in ((2, 3, 5), (2, 3, 4, 5)):
        yield case("InstanceNormalization<epsilon = 0.01>(a, b, c)", shape, (3,), (3,))
    yield from _attention()


def _attention() -> Iterator[NodeCase]:
    for attributes in ("", "<is_causal = 1>", "<scale = 0.3>", "<softcap = 2.0>"):
        yield case(
            f"Attention{attributes}(a, b, c)", (2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 6, 8), since=23
        )
    mask = np.where(flags(4, 6), 0.0, -1e4).astype(np.float32)
    yield case("Attention(a, b, c, d)", (2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 6, 8), mask, since=23)
    yield case(
        "Attention(a, b, c, d)",
        (2, 3, 4, 8),
        (2, 3, 6, 8),
        (2, 3, 6, 8),
        flags(4, 6) | (np.arange(6) == 0),
        since=23,
    )
    yield case(
        "Attention<q_num_heads = 3, kv_num_heads = 3>(a, b, c)",
        (2, 4, 24),
        (2, 6, 24),
        (2, 6, 24),
        since=23,
    )


def indexed() -> Iterator[NodeCase]:
    rng = np.random.default_rng(5)
    for axis, shape in ((0, (2, 4, 5)), (1, (3, 6, 5)), (-1, (3, 4, 1)), (1, (2, 3, 4))):
        index = rng.integers(-3, 3, shape)
        yield case(f"GatherElements<axis = {axis}>(a, b)", (3, 4, 5), index)
    yield case("GatherND(a, b)", (3, 4, 5), rng.integers(-3, 3, (2, 6, 2)))
    yield case(
        "GatherND<batch_dims = 1>(a, b)", (3, 4, 5), rng.integers(-4, 4, (3, 2, 1)), since=12
    )
    for op in ("ArgMax", "ArgMin"):
        for last in (0, 1) if op else ():
            attributes = f"axis = 1, keepdims = {1 - last}, select_last_index = {last}"
            yield case(
                f"{op}<{attributes}>(a)", rng.integers(-2, 3, (3, 7)).astype(np.float32), since=12
            )
    for largest in (0, 1):
        drawn = rng.integers(-2, 3, (3, 7)).astype(np.float32)
        yield case(f"TopK<largest = {largest}>(a, b)", drawn, ints(4), outputs=2)
        yield case(f"TopK<axis = 0, largest = {largest}>(a, b)", (5, 4), ints(2), outputs=2)
    distinct = np.stack([rng.permutation(4)[:2] - 4 for _ in range(15)]).reshape(3, 5, 2)
    index = np.moveaxis(distinct, -1, 1)
    yield case("ScatterElements<axis = 1>(a, b, c)", (3, 4, 5), index, (3, 2, 5))
    yield case("ScatterND(a, b, c)", (3, 4, 5), ints(2, -3).reshape(2, 1), (2, 4, 5))
    for reduction in ("add", "mul", "max", "min"):
        since = 18 if reduction in ("max", "min") else 16
        text = f'<reduction = "{reduction}">(a, b, c)'
        index = rng.integers(-3, 3, (6, 4, 5))
        yield case(f"ScatterElements{text}", (3, 4, 5), index, (6, 4, 5), since=since)
        index = rng.integers(-3, 3, (2, 3, 2))
        yield case(f"ScatterND{text}", (3, 4, 5), index, (2, 3, 5), since=since)
    for attributes in ("", "exclusive = 1", "reverse = 1", "exclusive = 1, reverse = 1"):
        yield case(f"CumSum<{attributes}>(a, b)", (3, 7), scalar(1, np.int64))
    for axis in (-1, 0, 1):
        index = rng.integers(-9, 9, (3, 4))
        yield case(f"OneHot<axis = {axis}>(a, b, c)", index, scalar(6, np.int64), floats(-1.0, 2.0))


def movement() -> Iterator[NodeCase]:
    for axis in (0, 1, -1):
        yield case(f"Gather<axis = {axis}>(a, b)", (3, 4, 5), np.array([[0, -1], [2, 1]]))
    yield case("Gather(a, b)", (3, 4), scalar(-2, np.int64))
    yield from indexed()
    for mode in ("constant", "reflect", "edge", "wrap"):
        since = 19 if mode == "wrap" else 11
        for pads in ((0, 1, 2, 0), (0, -1, 0, 0), (1, -1, 0, 3), (0, 1, -1, -1), (-1, 2, 2, -2)):
            yield case(f'Pad<mode = "{mode}">(a, b)', (4, 5), ints(*pads), since=since)
        yield case(
            f'Pad<mode = "{mode}">(a, b, "", c)',
            (2, 4, 5),
            ints(1, 2),
            ints(-1),
            since=max(18, since),
        )
    yield case("Pad(a, b, c)", (2, 3), ints(0, 1, 1, 0), scalar(2.5))
    yield case("Pad(a, b, c, d)", (2, 3, 4), ints(1, 1, 0, -1), scalar(2.5), ints(0, 2), since=18)
    yield case("Transpose(a)", (2, 3, 4))
    yield case("Transpose<perm = [1, 0, 2]>(a)", (2, 3, 4))
    yield case("Reshape(a, b)", (2, 3, 4), ints(0, -1))
    yield case("Reshape(a, b)", (), ints(1, 1))
    yield case("Reshape<allowzero = 1>(a, b)", (2, 3, 4), ints(4, 6), since=14)
    for axis in (0, 1, 3, -1, -2, -3):
        yield case(f"Flatten<axis = {axis}>(a)", (2, 3, 4))
    yield case("Squeeze<axes = [0, -1]>(a)", (1, 3, 1), until=12)
    yield case("Squeeze(a, b)", (1, 3, 1), ints(-1), since=13)
    yield case("Squeeze(a)", (1, 3, 1))
    yield case("Squeeze<axes = [2, -1, 1]>(a)", (3, 1, 1, 1), until=12)
    yield case("Squeeze(a, b)", (3, 1, 1, 1), ints(2, -1, 1), since=13)
    yield case("Unsqueeze<axes = [0, -1]>(a)", (3,), until=12)
    yield case("Unsqueeze<axes = [-2, -1]>(a)", (), until=12)
    yield case("Unsqueeze(a, b)", (), ints(0), since=13)
    yield case("Unsqueeze(a, b)", (3,), ints(-1, -3), since=13)
    yield case("Unsqueeze(a, b)", (3, 4), ints(0, -2), since=13)
    yield case("Expand(a, b)", (3, 1), ints(2, 1, 4))
    yield case("Expand(a, b)", (), ints(2, 3))
    yield case("Slice(a, b, c)", (5, 6), ints(1, -3), ints(4, 99))
    yield case("Slice(a, b, c, d, e)", (5, 6), ints(-1, 1), ints(-99, 5), ints(1, 0), ints(-2, 2))
    yield case("Slice(a, b, c, d)", (5, 6), ints(2), ints(-1), ints(-1))
    for axis in (0, 1, -1):
        yield case(f"Concat<axis = {axis}>(a, b)", (2, 3), (2, 3))
    yield case("Split<axis = 1>(a)", (2, 6), until=17, outputs=2)
    yield case("Split<axis = 1, num_outputs = 2>(a)", (2, 5), since=18, outputs=2)
    yield case("Split<axis = -1, split = [1, 4]>(a)", (2, 5), until=12, outputs=2)
    yield case("Split<axis = -1>(a, b)", (2, 5), ints(1, 4), since=13, outputs=2)
    for mode in ("DCR", "CRD"):
        yield case(f'DepthToSpace<blocksize = 2, mode = "{mode}">(a)', (2, 8, 3, 4))
    yield case("SpaceToDepth<blocksize = 2>(a)", (2, 3, 4, 6))
    yield case("Tile(a, b)", (2, 3), ints(2, 3))
    yield case("Shape(a)", (2, 3, 4))
    yield case("Shape<start = 1, end = -1>(a)", (2, 3, 4), since=15)
    yield case("Size(a)", (2, 3, 4))
    for shape in ((3, 3), (2, 1, 1), (2, 3, 6, 6)):
        yield case("Det(a)", shape, until=18)
    yield case("Det(a)", np.array([[1, 2, 3], [2, 4, 6], [1, 0, 1]], np.float32), until=18)
    yield case("CumSum(a, b)", (3, 4), scalar(1, np.int64))
    yield case("Range(a, b, c)", scalar(1, np.int64), scalar(7, np.int64), scalar(2, np.int64))
    yield case("ConstantOfShape(a)", ints(2, 3))
    yield case("GatherElements<axis = 1>(a, b)", (3, 4), np.array([[0, 1], [2, -1], [3, 3]]))
    yield case("GatherND(a, b)", (3, 4, 5), np.array([[0, 1], [2, 3]]))
    yield case("ScatterND(a, b, c)", (4, 3), np.array([[0], [2]]), (2, 3))
    yield case('Einsum<equation = "bij,bjk->bik">(a, b)', (2, 3, 4), (2, 4, 5), since=12)
    yield case("Trilu<upper = 0>(a)", (2, 4, 5), since=14)


_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


def resizes() -> Iterator[NodeCase]:
    pairs = [
        ((5, 7), (2.0, 2.0)),
        ((5, 7), (1.5, 2.5)),
        ((4, 10), (3.0, 0.7)),
        ((6, 9), (0.5, 0.3)),
        ((3, 8), (1.0, 0.125)),
    ]
    sizes = [((5, 7), (9, 12)), ((13, 16), (26, 33)), ((7, 9), (4, 5)), ((5, 5), (1, 5))]
    for coordinates in _COORDINATES:
        for (h, w), (p, q) in pairs:
            text = f'mode = "linear", coordinate_transformation_mode = "{coordinates}"'
            yield case(f'Resize<{text}>(a, "", b)', (2, 3, h, w), floats(1.0, 1.0, p, q), since=13)
        for (h, w), (p, q) in sizes:
            text = f'mode = "linear", coordinate_transformation_mode = "{coordinates}"'
            yield case(f'Resize<{text}>(a, "", "", b)', (2, 3, h, w), ints(2, 3, p, q), since=13)
        for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
            text = f'coordinate_transformation_mode = "{coordinates}", nearest_mode = "{nearest}"'
            for (h, w), (p, q) in pairs:
                yield case(
                    f'Resize<{text}>(a, "", b)', (1, 2, h, w), floats(1.0, 1.0, p, q), since=13
                )
            for (h, w), (p, q) in sizes:
                yield case(
                    f'Resize<{text}>(a, "", "", b)', (1, 2, h, w), ints(1, 2, p, q), since=13
                )
    yield case(
        "Resize(a, b, c)", (1, 2, 4, 5), floats(*[0.0] * 4, *[1.0] * 4), floats(1.0, 1.0, 2.0, 1.6)
    )
    yield case('Resize<mode = "linear">(a, "", b)', (2, 3, 7), floats(1.0, 1.0, 1.7), since=13)
