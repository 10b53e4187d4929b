"""The bytes of an operator's spec, read here by hand as docs/spec_format.md says them."""

import struct
import zlib
from dataclasses import replace

import pytest

from wpk.dims import DimNode, DimOperation
from wpk.dtypes import DType
from wpk.launch import (
    EARLY_LAUNCH,
    CounterArgument,
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
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
    operator_id,
)

HEADER_BYTES = 20


def operator(name: str = "relu") -> OperatorSpec:
    grid = DimNode(DimOperation.CEIL_DIV, DimNode(DimOperation.PROD, "batch", 30), 128)
    launch = Launch(
        kernel="ab" * 32,
        entry="kernel",
        grid=(grid, 1, 1),
        block=(128, 1, 1),
        cluster=(1, 1, 1),
        shared_bytes=0,
        attributes=(EARLY_LAUNCH,),
        arguments=(
            InputArgument(0),
            SizeArgument("batch"),
            OutputArgument(0),
            WorkspaceArgument(64),
            CounterArgument(3),
        ),
    )
    tensor = SpecTensor(DType.FP16, ("batch", 30))
    return OperatorSpec(
        name,
        (Dimension("batch", 0, 0),),
        (tensor,),
        (tensor,),
        (SpecKernel("ab" * 32, "kernel", "sm_90a", b"cubin"),),
        (Variant("plain", (Format.LINEAR, Format.LINEAR), (launch,)),),
    )


def test_the_header_says_what_follows() -> None:
    data = operator_bytes(operator())
    magic, version, kind, size, checksum = struct.unpack_from("<4sHHQI", data)
    body = data[HEADER_BYTES:]
    assert (magic, version, kind) == (b"WPKS", 3, 1)
    assert (size, checksum) == (len(body), zlib.crc32(body))


def test_the_body_is_what_the_format_says() -> None:
    def text(value: bytes) -> bytes:
        return struct.pack("<I", len(value)) + value

    def constant(value: int) -> bytes:
        return struct.pack("<Bq", 0, value)

    u32, batch = struct.Struct("<I").pack, struct.pack("<Bq", 1, 0)
    tensor = b"\x02" + u32(2) + u32(1) + batch + u32(1) + constant(30)
    grid = u32(5) + batch + constant(30) + b"\x03" + constant(128) + b"\x07"
    expected = [
        text(b"relu"),
        u32(1) + text(b"batch") + u32(0) + u32(0),
        u32(1) + tensor,
        u32(1) + tensor,
        u32(1) + text(b"ab" * 32) + text(b"kernel") + text(b"sm_90a") + text(b"cubin"),
        u32(1) + text(b"plain") + u32(2) + b"\x00\x00",
        b"\x00" + u32(1) + u32(0) + grid + 2 * (u32(1) + constant(1)),
        struct.pack("<6I", 128, 1, 1, 1, 1, 1) + u32(0) + u32(1),
        u32(5) + b"\x00" + u32(0) + b"\x01" + u32(1) + batch + b"\x03" + u32(0),
        b"\x04" + u32(1) + constant(64) + b"\x05" + u32(1) + constant(3),
    ]
    assert operator_bytes(operator())[HEADER_BYTES:] == b"".join(expected)


def test_the_id_tells_operators_apart() -> None:
    one, other = operator_bytes(operator()), operator_bytes(operator("other"))
    assert operator_id(one) == operator_id(operator_bytes(operator()))
    assert operator_id(one) != operator_id(other)


def test_a_dimension_that_is_not_declared_has_no_number() -> None:
    with pytest.raises(KeyError, match="batch"):
        operator_bytes(replace(operator(), dimensions=()))
