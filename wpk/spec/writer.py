"""The types that all specs are made of, as bytes: numbers, texts, sequences, expressions, launches."""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from wpk.dims import DimExpr, DimNode, DimOperation
from wpk.launch import (
    COOPERATIVE,
    EARLY_LAUNCH,
    Argument,
    CounterArgument,
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.spec.library_call import LibraryCall

Names = Mapping[str, int]
"""Numbers of free dimensions by name."""

_T = TypeVar("_T")

_CONSTANT, _DIMENSION = 0, 1
_LAUNCHES, _LIBRARY = 0, 1
_OPERATIONS = {
    DimOperation.SUM: 2,
    DimOperation.PROD: 3,
    DimOperation.MAX: 4,
    DimOperation.SUB: 5,
    DimOperation.MIN: 6,
    DimOperation.CEIL_DIV: 7,
    DimOperation.FLOOR_DIV: 8,
    DimOperation.EQUAL: 9,
    DimOperation.LESS: 10,
}
_ATTRIBUTES = {EARLY_LAUNCH: 1, COOPERATIVE: 2}


class SpecWriter:
    """Bytes that grow by one field after another."""

    def __init__(self, dimensions: Iterable[str]) -> None:
        """Begin with none.

        Args:
            dimensions: Names of the free dimensions, in the order of their numbers.
        """
        self._parts: list[bytes] = []
        self._dimensions: Names = {name: number for number, name in enumerate(dimensions)}

    def written(self) -> bytes:
        """Return what was written."""
        return b"".join(self._parts)

    def u8(self, value: int) -> None:
        """Write an unsigned byte."""
        self._pack("<B", value)

    def u32(self, value: int) -> None:
        """Write an unsigned integer of 32 bits."""
        self._pack("<I", value)

    def i32(self, value: int) -> None:
        """Write an integer of 32 bits."""
        self._pack("<i", value)

    def u64(self, value: int) -> None:
        """Write an unsigned integer of 64 bits."""
        self._pack("<Q", value)

    def i64(self, value: int) -> None:
        """Write an integer of 64 bits."""
        self._pack("<q", value)

    def f64(self, value: float) -> None:
        """Write a number of 64 bits."""
        self._pack("<d", value)

    def blob(self, data: bytes) -> None:
        """Write a length and bytes."""
        self.u32(len(data))
        self._parts.append(data)

    def text(self, text: str) -> None:
        """Write a text, as the length and bytes of its UTF-8."""
        self.blob(text.encode())

    def sequence(self, items: Sequence[_T], write: Callable[[_T], None]) -> None:
        """Write how many items there are, and each of them."""
        self.u32(len(items))
        for item in items:
            write(item)

    def expression(self, expression: DimExpr) -> None:
        """Write an expression in reverse Polish order."""
        instructions = list(self._instructions(expression))
        self.u32(len(instructions))
        self._parts += instructions

    def kernel(self, digest: str, entry: str, arch: str, image: bytes) -> None:
        """Write a kernel: the digest of its source, its name, what it is compiled for, its machine code."""
        for each in (digest, entry, arch):
            self.text(each)
        self.blob(image)

    def work(
        self,
        work: Sequence[Launch] | LibraryCall,
        kernels: Mapping[str, int],
        element_bytes: Sequence[int],
    ) -> None:
        """Write what computes an operator.

        Args:
            work: Launches in sequence, at least one; or a library's implementation.
            kernels: Numbers of kernels by the digest of their source.
            element_bytes: Of the operator's inputs.
        """
        if isinstance(work, LibraryCall):
            self.u8(_LIBRARY)
            self.text(work.library)
            self.text(work.version)
            self.u64(work.workspace_bytes)
            self.sequence(work.inputs, self.u32)
            self.blob(work.recipe)
            return
        self.u8(_LAUNCHES)
        self.sequence(work, lambda each: self._launch(each, kernels, element_bytes))

    def _launch(
        self, launch: Launch, kernels: Mapping[str, int], element_bytes: Sequence[int]
    ) -> None:
        self.u32(kernels[launch.kernel])
        for size in launch.grid:
            self.expression(size)
        for extent in (*launch.block, *launch.cluster):
            self.u32(extent)
        self.u32(launch.shared_bytes)
        self.u32(sum(_ATTRIBUTES[name] for name in launch.attributes))
        self.sequence(launch.arguments, lambda each: self._argument(each, element_bytes))

    def _argument(self, argument: Argument, element_bytes: Sequence[int]) -> None:
        match argument:
            case InputArgument(index):
                self.u8(0)
                self.u32(index)
            case SizeArgument(expression):
                self.u8(1)
                self.expression(expression)
            case TensorMapArgument():
                self.u8(2)
                self._tensor_map(argument, element_bytes[argument.index])
            case OutputArgument(index):
                self.u8(3)
                self.u32(index)
            case WorkspaceArgument(size):
                self.u8(4)
                self.expression(size)
            case CounterArgument(count):
                self.u8(5)
                self.expression(count)

    def _tensor_map(self, argument: TensorMapArgument, element_bytes: int) -> None:
        self.u32(argument.index)
        self.u32(element_bytes)
        self.sequence(argument.shape, self.expression)
        self.sequence(argument.strides, self.expression)
        self.sequence(argument.box, self.u32)
        self.u32(argument.swizzle)
        self.u8(argument.to_tf32)
        self.u8(argument.im2col is not None)
        if argument.im2col is not None:
            self.sequence(argument.im2col.lower, self.i32)
            self.sequence(argument.im2col.upper, self.i32)
            self.sequence(argument.im2col.steps, self.u32)

    def _instructions(self, expression: DimExpr) -> Iterable[bytes]:
        if isinstance(expression, int):
            yield struct.pack("<Bq", _CONSTANT, expression)
        elif isinstance(expression, str):
            yield struct.pack("<Bq", _DIMENSION, self._dimensions[expression])
        elif isinstance(expression, DimNode):
            yield from self._instructions(expression.left)
            yield from self._instructions(expression.right)
            yield struct.pack("<B", _OPERATIONS[expression.operation])

    def _pack(self, form: str, value: float) -> None:
        self._parts.append(struct.pack(form, value))
