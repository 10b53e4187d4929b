"""The text of a generated unit: an include, the problem's and the schedule's numbers, one kernel.

Every template's unit has the same form. Members of a struct may be types (``Type``), strides
(``Wide``, 64 bits) or plain ints and bools.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from wpk.kernel_source import KernelSource
from wpk.problems.operand import Tensor
from wpk.schedules.template import Schedule


@dataclass(frozen=True)
class Type:
    """A C++ type by its text."""

    text: str


@dataclass(frozen=True)
class Wide:
    """A 64-bit constant."""

    value: int


Member = Type | Wide | bool | int


def struct(name: str, members: Mapping[str, Member]) -> str:
    """A struct of constants and types."""
    return f"struct {name} {{\n" + "".join(f"  {_line(*m)}\n" for m in members.items()) + "};\n"


def strided(tensor: Tensor, width: int, axes: tuple[int, int, int, int]) -> str:
    """``wpk::Strided`` of a tensor: ``axes`` are the domain's three row axes and its columns."""
    strides = ", ".join(str(tensor.strides[axis]) for axis in axes)
    return f"wpk::Strided<{tensor.dtype.c_name}, {width}, {strides}>"


@dataclass(frozen=True)
class Entry:
    """A kernel's head and the device function that it calls.

    Attributes:
        template: Name of template and header; the kernel is called ``wpk_<template>``.
        function: Device function in namespace ``wpk``.
        threads: Threads of a block.
        inputs: Names of the pointers that the function takes by name.
        operands: Number of the epilogue's operands, passed as an array.
    """

    template: str
    function: str
    threads: int
    inputs: tuple[str, ...]
    operands: int

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"wpk_{self.template}"


def kernel_source(entry: Entry, problem: Mapping[str, Member], schedule: Schedule) -> KernelSource:
    """The unit of a kernel ``name(inputs..., operands..., int n, void* y)``."""
    operands = [f"operand{i}" for i in range(entry.operands)]
    pointers = ", ".join(f"const void* {name}" for name in (*entry.inputs, *operands))
    arguments = ", ".join(entry.inputs)
    text = (
        f"#include <wpk/schedules/{entry.template}.cuh>\n\n"
        "namespace {\n"
        f"{struct('Problem', problem)}\n"
        f"{struct('Schedule', dict(schedule.parameters()))}"
        "}  // namespace\n\n"
        f"WPK_KERNEL({entry.threads}) {entry.name}({pointers}, int n, void* y) {{\n"
        f"  const void* const operands[] = {{{', '.join(operands) or 'nullptr'}}};\n"
        f"  wpk::{entry.function}<Problem, Schedule>({arguments}, operands, n, y);\n"
        "}\n"
        f"WPK_EXPORT({entry.name})\n"
    )
    return KernelSource(entry.name, text)


def _line(name: str, member: Member) -> str:
    match member:
        case Type(text):
            return f"using {name} = {text};"
        case Wide(value):
            return f"static constexpr wpk::int64 {name} = {value};"
        case bool():
            return f"static constexpr bool {name} = {str(member).lower()};"
        case int():
            return f"static constexpr int {name} = {member};"
