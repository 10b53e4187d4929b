"""Library calls on the CPU compute the problem's definition on memory as the problem lays it out."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wpk.dtypes import DType, Precision
from wpk.emulator import Emulator, EmulatorProcess
from wpk.errors import EngineError, LaunchError
from wpk.execution import BoundCall, LibraryImage
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.libraries import NumpyLibraries, find_library, lay_out, random_case
from wpk.libraries.memory import Place, places
from wpk.libraries.reference import worst_error
from wpk.problems import Convolution, Epilogue, Matmul, Tensor

FP16, FP32 = DType.FP16, DType.FP32
BIASED = apply("Relu", apply("Add", apply("Add", Acc(), Operand(0)), Operand(1)))
CONFIGURATION = (("graph", 0), ("engine", 3), ("TILE_SIZE", 2))


def _rows(channels: int, row: int) -> tuple[int, ...]:
    """Channels-last over 5 × 6 pixels, each pixel in a row of so many elements."""
    return (30 * row, 1, 6 * row, row) if channels > 1 else (30, 1, 6, 1)


CONVOLUTION = Convolution(
    *(Precision.FP16, Extent(3), 8, 5, 6, 16, 5, 6, (3, 3), (1, 1), (1, 1), (1, 1), 2, False),
    Tensor(FP16, _rows(8, 8)),
    Tensor(FP16, _rows(16, 24)),  # rows of 24: a slice of a wider tensor
    Epilogue(BIASED, (Tensor(FP16, (0, 1, 0, 0)), Tensor(FP16, _rows(16, 16)))),
)
MATMUL = Matmul(
    *(Precision.FP32, (Extent(2), 3), Extent(5), 8, 12),
    *(Tensor(FP32, (180, 60, 12, 1)), Tensor(FP32, (96, 0, 1, 12)), False),
    *(Tensor(FP32, (120, 40, 8, 1)), Epilogue(Acc())),
)


@pytest.mark.parametrize("problem", [CONVOLUTION, MATMUL], ids=["convolution", "matmul"])
@pytest.mark.parametrize("device", [Emulator, EmulatorProcess])
def test_computes_what_the_problem_is_and_touches_nothing_else(problem: Any, device: Any) -> None:
    case = random_case(problem, seed=3)
    image = LibraryImage("cuDNN", "9.0.0", problem, CONFIGURATION)
    layout = find_library("cuDNN").constant_layout(problem, CONFIGURATION)
    *inputs, output = places(problem, layout)
    cpu = device(libraries=NumpyLibraries())
    with nullcontext() if device is Emulator else cpu:
        cpu.load(image)
        pointers = []
        for index, (place, values) in enumerate(zip(inputs, case.operands, strict=True)):
            memory = np.zeros(place.bytes, np.uint8)
            if index == 1 and layout is not None:
                memory = lay_out(layout, values).reshape(-1).view(np.uint8)
            else:
                place.view(memory)[...] = values
            pointers.append(_place(cpu, memory))
        before = np.full(output.bytes, 0xA5, np.uint8)
        target = _place(cpu, before)
        cpu.capture([BoundCall(image.digest, (*pointers, target), 0)]).replay()
        after = cpu.read(target, output.bytes)
    assert worst_error(output.view(after), case) <= 1
    mask = np.zeros(output.bytes, np.uint8)
    output.view(mask)[...] = np.frombuffer(b"\xff" * 4, output.tensor.dtype.numpy)[0]
    assert np.array_equal(after[mask == 0], before[mask == 0])


def test_broadcast_operands_have_one_element() -> None:
    *_, bias, _residual, _y = places(CONVOLUTION, "krsc")
    assert bias == Place(Tensor(FP16, (0, 1, 0, 0)), (1, 16, 1, 1))
    assert bias.bytes == 32


def test_a_call_of_a_graph_that_the_problem_does_not_have_is_refused() -> None:
    wrong = LibraryImage("cuDNN", "9.0.0", CONVOLUTION, (("graph", 9), ("engine", 0)))
    with pytest.raises(EngineError, match="graph 9 of"):
        Emulator(libraries=NumpyLibraries()).load(wrong)
    free = replace(CONVOLUTION, n=Extent(3, "batch"))
    with pytest.raises(EngineError, match="is free"):
        Emulator(libraries=NumpyLibraries()).load(
            LibraryImage("cuDNN", "9.0.0", free, CONFIGURATION)
        )


def test_devices_without_libraries_refuse_calls() -> None:
    image = LibraryImage("cuDNN", "9.0.0", CONVOLUTION, CONFIGURATION)
    with pytest.raises(EngineError, match="executes kernels"):
        Emulator().load(image)
    with pytest.raises(LaunchError, match="executes kernels"):
        Emulator().launch(BoundCall(image.digest, (), 0))


def test_images_that_differ_in_anything_have_different_digests() -> None:
    image = LibraryImage("cuDNN", "9.0.0", CONVOLUTION, CONFIGURATION)
    others = [
        replace(image, version="9.0.1"),
        replace(image, problem=replace(CONVOLUTION, groups=1)),
        replace(image, configuration=(("graph", 0), ("engine", 3), ("TILE_SIZE", 3))),
    ]
    assert len({image.digest, *(each.digest for each in others)}) == 4


def _place(device: Any, memory: Any) -> int:
    address = int(device.allocate(memory.nbytes))
    device.write(address, memory)
    return address
