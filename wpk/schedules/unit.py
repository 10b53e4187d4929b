"""The text of a generated unit: an include, the problem's and the schedule's numbers, one kernel.

Every template's unit has the same form. A member of a struct is a type, an enumerator, a bool, an int or
the bits of a number.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wpk.expression import fp64_bits
from wpk.kernel_source import KernelSource
from wpk.schedules.limit import Limit


@dataclass(frozen=True)
class Type:
    """A C++ type by its text."""

    text: str


@dataclass(frozen=True)
class Enumerator:
    """A C++ enumerator by its text."""

    text: str


@dataclass(frozen=True)
class Wide:
    """An int whose arithmetic is in 64 bits whatever its value: a stride."""

    value: int


@dataclass(frozen=True)
class Bits:
    """The bits of a number in fp64."""

    value: float


Member = Type | Enumerator | Wide | Bits | bool | int
Members = Mapping[str, Member]


def fp32_bits(value: float) -> int:
    """Return the bits of the nearest fp32 number, as units pass floating-point constants."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def fp32_as_int32(value: float) -> int:
    """Return the same bits as a launch passes them: an int32."""
    return int(struct.unpack("<i", struct.pack("<f", value))[0])


def kernel_source(
    template: str,
    header: str,
    problem: Members,
    schedule: Members,
    limits: Sequence[Limit],
    inputs: Sequence[int | float],
    threads: int,
    *,
    sizes: int = 0,
    tensor_maps: int = 0,
    outputs: int = 1,
    partials: bool = False,
    hands_registers: bool = False,
) -> KernelSource:
    """Return the unit of a kernel ``wpk_<template>(inputs..., int n, numbers..., void* y)``.

    Args:
        template: Name of the template; its function has the name in camel case.
        header: Its header below ``wpk/schedules``, without ``.cuh``.
        problem: Members of ``Problem``.
        schedule: Members of ``Schedule``: its parameters, and what follows from them.
        limits: That ``Schedule`` asserts of its members.
        inputs: In their order pointers to the operator's inputs, by their numbers, and fp32 numbers that the
            kernel takes by value and reads as operands.
        threads: Threads of a block.
        sizes: Further sizes that it takes, behind ``n``.
        tensor_maps: Tensor maps that it takes, in front of ``y``.
        outputs: What it writes: ``y``, and others behind it.
        partials: Whether it also takes memory for partial sums and counters of their tiles.
        hands_registers: Whether some of a block's warps hand registers to others.
    """
    entry = f"wpk_{template}"
    parameters, arguments = _signature(inputs, sizes, tensor_maps, outputs, partials)
    text = (
        f"#include <wpk/schedules/{header}.cuh>\n\n"
        "namespace {\n"
        f"{_struct('Problem', problem)}\n"
        f"{_struct('Schedule', schedule, limits)}"
        "}  // namespace\n\n"
        f"WPK_KERNEL({threads}{', 1' if hands_registers else ''}) {entry}({parameters}) {{\n"
        f"  wpk::{_camel_case(template)}<Problem, Schedule>({arguments});\n"
        "}\n"
        f"WPK_EXPORT({entry})\n"
    )
    return KernelSource(entry, text)


def _camel_case(template: str) -> str:
    head, *tail = template.split("_")
    return head + "".join(part.capitalize() for part in tail)


def _signature(
    inputs: Sequence[int | float], sizes: int, tensor_maps: int, outputs: int, partials: bool
) -> tuple[str, str]:
    """Parameters of the kernel, and what it hands on to the header's function."""
    pointers = [f"x{index}" for index in inputs if isinstance(index, int)]
    numbers = [f"c{index}" for index in range(len(inputs) - len(pointers))]
    addresses = iter([f"&{name}" for name in numbers])
    operands = [f"x{each}" if isinstance(each, int) else next(addresses) for each in inputs]
    counts = ["n", *(f"s{index}" for index in range(sizes))]
    maps = [f"m{index}" for index in range(tensor_maps)]
    written = ["y", *(f"y{index}" for index in range(1, outputs))]
    shared = ["parts", "counters"] if partials else []
    parameters = [
        *(f"const void* {name}" for name in pointers),
        *(f"int {name}" for name in counts),
        *(f"float {name}" for name in numbers),
        *(f"WPK_GRID_CONSTANT const wpk::TensorMap {name}" for name in maps),
        *(f"void* {name}" for name in (*written, *shared)),
    ]
    arguments = [f"{{{{{', '.join(operands)}}}}}", *counts]
    if maps:
        arguments.append(f"{{{{{', '.join(f'&{name}' for name in maps)}}}}}")
    arguments.append("y" if outputs == 1 else f"{{{', '.join(written)}}}")
    if shared:
        arguments.append(f"{{{', '.join(shared)}}}")
    return ", ".join(parameters), ", ".join(arguments)


def _struct(name: str, members: Members, limits: Sequence[Limit] = ()) -> str:
    lines = [f"  {_member(*each)}\n" for each in members.items()]
    if limits:
        lines.append("\n")
    lines += [f"  {limit.static_assert}\n" for limit in limits]
    return f"struct {name} {{\n{''.join(lines)}}};\n"


def _member(name: str, member: Member) -> str:
    match member:
        case Type(text):
            return f"using {name} = {text};"
        case Enumerator(text):
            return f"static constexpr auto {name} = {text};"
        case Bits(value):
            return f"static constexpr wpk::uint64 {name} = 0x{fp64_bits(value):016x}ull;"
        case bool():
            return f"static constexpr bool {name} = {str(member).lower()};"
        case int() if -(2**31) <= member < 2**31:
            return f"static constexpr int {name} = {member};"
        case int() | Wide():
            value = member.value if isinstance(member, Wide) else member
            return f"static constexpr wpk::int64 {name} = {value};"
