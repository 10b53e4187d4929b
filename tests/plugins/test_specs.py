"""Specs that Python writes, as C++ reads them: the same, or refused with a reason."""

import random
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.plugins import answers

from wpk.dims import DimExpr, DimNode, DimOperation, evaluate
from wpk.dtypes import DType
from wpk.errors import EngineError
from wpk.launch import (
    EARLY_LAUNCH,
    Argument,
    CounterArgument,
    Im2col,
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.spec import (
    Dimension,
    Format,
    OperatorSpec,
    SpecKernel,
    SpecTensor,
    Variant,
    operator_bytes,
)
from wpk.spec.elements import element_code

HEADER_BYTES = 20
DIGEST = "ab" * 32
TILED = TensorMapArgument(0, (64, "batch"), (128,), (64, 8), 128)
IM2COL = TensorMapArgument(
    1,
    (64, 14, 14, "batch"),
    (128, 1792, 25088),
    (64, 128),
    64,
    Im2col((-1, -2), (1, 2), (2, 3)),
    True,
)
ARGUMENTS = (
    InputArgument(1),
    SizeArgument(DimNode(DimOperation.SUB, "batch", "length")),
    TILED,
    IM2COL,
    OutputArgument(0),
    WorkspaceArgument(DimNode(DimOperation.PROD, "batch", 4096)),
    CounterArgument(7),
)


def launch(*arguments: Argument, **changes: Any) -> Launch:
    grid = (DimNode(DimOperation.CEIL_DIV, "length", 128), "batch", 2)
    plain = Launch(DIGEST, "kernel", grid, (128, 2, 1), 65536, arguments)
    return replace(plain, **changes)


def operator(*outputs: DimExpr, launches: tuple[Launch, ...] = ()) -> OperatorSpec:
    """An operator of every kind of field over two free dimensions."""
    early = launch(*ARGUMENTS, cluster=(1, 1, 2), attributes=(EARLY_LAUNCH,))
    return OperatorSpec(
        "fused: \u00e9 \u4e2d \U0001f600",
        (Dimension("batch", 0, 0), Dimension("length", 1, 2)),
        (SpecTensor(DType.FP16, ("batch", 64)), SpecTensor(DType.FP32, (1, 3, "length"))),
        (SpecTensor(DType.BF16, outputs or ("batch", 5)),),
        (SpecKernel(DIGEST, "kernel", "sm_90a", b"\x7fELF and more"),),
        (
            Variant("a", (Format.HWC8, Format.LINEAR, Format.HWC16), (early, launch())),
            Variant("b", (Format.LINEAR, Format.HWC, Format.LINEAR), launches or (launch(),)),
        ),
    )


def test_what_python_writes_is_what_is_read(print_specs: Path) -> None:
    dims = (6, 300)
    (seen,) = answers(print_specs, [operator_bytes(operator())], dims)
    shape, strides = [64, 14, 14, 6], [128, 1792, 25088]
    arguments = [
        [0, 1],
        [1, -294],
        [2, [0, 2, [64, 6], [128], [64, 8], 128, 0, None]],
        [2, [1, 4, shape, strides, [64, 128], 64, 1, [[-1, -2], [1, 2], [2, 3]]]],
        [3, 0],
        [4, 6 * 4096],
        [5, 7],
    ]
    sizes = [[3, 6, 2], [128, 2, 1]]
    assert seen == {
        "name": "fused: \u00e9 \u4e2d \U0001f600",
        "dimensions": [["batch", 0, 0], ["length", 1, 2]],
        "inputs": [[2, [6, 64]], [1, [1, 3, 300]]],
        "outputs": [[3, [6, 5]]],
        "kernels": [[DIGEST, "kernel", "sm_90a", 13]],
        "variants": [
            [
                "a",
                [2, 0, 3],
                [[0, *sizes, [1, 1, 2], 65536, 1, arguments], [0, *sizes, [1] * 3, 65536, 0, []]],
            ],
            ["b", [0, 1, 0], [[0, *sizes, [1, 1, 1], 65536, 0, []]]],
        ],
    }


@pytest.mark.parametrize("dtype", list(DType))
def test_every_element_type_is_read(print_specs: Path, dtype: DType) -> None:
    spec = replace(operator(), outputs=(SpecTensor(dtype, ("batch", 5)),))
    (seen,) = answers(print_specs, [operator_bytes(spec)], (6, 300))
    assert seen["outputs"] == [[element_code(dtype), [6, 5]]]


_NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-9, 9)
_EXPRESSIONS: st.SearchStrategy[DimExpr] = st.recursive(
    _NUMBERS | st.sampled_from(["batch", "length"]),
    lambda inner: st.builds(DimNode, st.sampled_from(DimOperation), inner, inner),
    max_leaves=12,
)


@settings(max_examples=25, deadline=None)
@given(st.lists(_EXPRESSIONS, min_size=20, max_size=60), st.tuples(_NUMBERS, _NUMBERS))
def test_expressions_have_pythons_values(
    print_specs: Path, expressions: list[DimExpr], dims: tuple[int, int]
) -> None:
    (seen,) = answers(print_specs, [operator_bytes(operator(*expressions))], dims)
    for expression, value in zip(expressions, seen["outputs"][0][1], strict=True):
        expected = valued(expression, {"batch": dims[0], "length": dims[1]})
        if isinstance(expected, str):
            assert ("divides by zero" in value) == ("divides by zero" in expected), expression
        else:
            assert value == expected, expression


def valued(expression: DimExpr, dims: dict[str, int]) -> int | str:
    """The value in Python, or why there is none."""
    try:
        return evaluate(expression, dims)
    except EngineError as error:
        return str(error)


def resealed(body: bytes) -> bytes:
    """A body with a right header."""
    return struct.pack("<4sHHQI", b"WPKS", 3, 1, len(body), zlib.crc32(body)) + body


def test_every_truncation_is_refused(print_specs: Path) -> None:
    data = operator_bytes(operator())
    cut = [data[:size] for size in range(len(data))]
    cut += [resealed(data[HEADER_BYTES:size]) for size in range(HEADER_BYTES, len(data))]
    for seen in answers(print_specs, cut):
        assert seen["error"].startswith("the spec "), seen
        assert "; fix: " in seen["error"]


def test_a_changed_byte_is_noticed_and_never_fatal(print_specs: Path) -> None:
    data, draw = operator_bytes(operator()), random.Random(0)
    plain, sealed = [], []
    for _ in range(1500):
        at = draw.randrange(HEADER_BYTES, len(data))
        value = draw.choice([0, 1, 0x7F, 0x80, 0xFF, data[at] ^ 1 << draw.randrange(8)])
        changed = data[:at] + bytes([value]) + data[at + 1 :]
        if changed != data:
            plain.append(changed)
            sealed.append(resealed(changed[HEADER_BYTES:]))
    assert all("checksum" in seen["error"] for seen in answers(print_specs, plain))
    refused = [seen for seen in answers(print_specs, sealed, (2, 3)) if "error" in seen]
    assert len(refused) > len(sealed) / 4
    assert all("; fix: " in seen["error"] and seen["code"] == 1 for seen in refused)


WRONG: list[tuple[str, OperatorSpec, str]] = [
    (
        "format",
        replace(operator(), variants=(Variant("a", (Format.HWC,), (launch(),)),)),
        "1 formats for 3",
    ),
    (
        "no launch",
        replace(operator(), variants=(Variant("a", (Format.HWC,) * 3, ()),)),
        "without a launch",
    ),
    ("no variant", replace(operator(), variants=()), "0 variants"),
    (
        "no image",
        replace(operator(), kernels=(SpecKernel(DIGEST, "k", "sm", b""),)),
        "without its image",
    ),
    ("input", operator(launches=(launch(InputArgument(2)),)), "names input 2 of 2"),
    ("output", operator(launches=(launch(OutputArgument(1)),)), "names output 1 of 1"),
    (
        "axis",
        replace(operator(), dimensions=(Dimension("batch", 0, 2), Dimension("length", 1, 2))),
        "axis 2 of 2",
    ),
    (
        "another axis",
        replace(operator(), dimensions=(Dimension("batch", 0, 1), Dimension("length", 1, 2))),
        "something else",
    ),
    ("block", operator(launches=(launch(block=(64, 32, 1)),)), "a block of 2048 threads"),
    ("depth", operator(launches=(launch(block=(1, 1, 65)),)), "65 threads along axis 2"),
    ("no threads", operator(launches=(launch(block=(0, 1, 1)),)), "at least 1"),
    ("cluster", operator(launches=(launch(cluster=(8, 4, 1)),)), "a cluster of 32 blocks"),
    ("shared", operator(launches=(launch(shared_bytes=2**20),)), "bytes of shared memory"),
    ("rank", operator(launches=(launch(replace(TILED, shape=(64,))),)), "do not belong together"),
    ("box", operator(launches=(launch(replace(TILED, box=(64,))),)), "do not belong together"),
    (
        "im2col",
        operator(launches=(launch(replace(TILED, im2col=Im2col((), (), ()))),)),
        "im2col mode",
    ),
]


@pytest.mark.parametrize(
    ("spec", "reason"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
def test_what_does_not_add_up_is_refused(
    print_specs: Path, spec: OperatorSpec, reason: str
) -> None:
    (seen,) = answers(print_specs, [operator_bytes(spec)])
    assert reason in seen["error"]


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (0, b"V", "begin with WPKS"),
        (4, b"\x04", "version 4"),
        (6, b"\x03", "of kind 3"),
        (8, b"\x00", "its body has"),
    ],
)
def test_a_wrong_header_is_refused(print_specs: Path, at: int, value: bytes, reason: str) -> None:
    data = operator_bytes(operator())
    (seen,) = answers(print_specs, [data[:at] + value + data[at + 1 :]])
    assert reason in seen["error"]


def test_arguments_out_of_order_are_refused(print_specs: Path) -> None:
    data = operator_bytes(operator(launches=(launch(InputArgument(0), OutputArgument(0)),)))
    ordered, swapped = b"\x00\0\0\0\0\x03\0\0\0\0", b"\x03\0\0\0\0\x00\0\0\0\0"
    assert data.endswith(ordered)
    (seen,) = answers(print_specs, [resealed(data[HEADER_BYTES:].replace(ordered, swapped))])
    assert "out of order" in seen["error"]


@pytest.mark.parametrize(
    "text", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"a\0b", b"\xe4\xb8"]
)
def test_a_name_that_is_no_text_is_refused(print_specs: Path, text: bytes) -> None:
    name = operator().name.encode()
    body = operator_bytes(operator())[HEADER_BYTES + 4 + len(name) :]
    (seen,) = answers(print_specs, [resealed(struct.pack("<I", len(text)) + text + body)])
    assert "UTF-8" in seen["error"]
