"""Templates of one kernel over a linear grid: what its unit says and how it is launched."""

import abc
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, final

from wpk.dims import ceil_div, product
from wpk.extent import Extent
from wpk.kernel_source import KernelSource
from wpk.launch import Argument, InputArgument, Launch, OutputArgument, SizeArgument
from wpk.schedules.template import P, S, Schedule, ScheduleTemplate


@dataclass(frozen=True)
class Kernel:
    """A kernel of one problem and schedule.

    Attributes:
        types: Type members of the unit's ``Problem``.
        constants: Constant members of the unit's ``Problem``.
        inputs: Operator inputs.
        leading: The run-time extent.
        items: Items at one leading index.
        block_items: Items that a block takes.
        threads: Threads of a block.
        names: Named constants (enumerators) of the unit's ``Problem``.
    """

    types: Mapping[str, str]
    constants: Mapping[str, int]
    inputs: int
    leading: Extent
    items: int
    block_items: int
    threads: int
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def blocks(self) -> int:
        """Blocks of the grid at the extent that models use."""
        return -(-self.leading.value * self.items // self.block_items)


class SingleKernelTemplate(ScheduleTemplate[P, S], abc.ABC, Generic[P, S]):
    """A template whose header has one function, named like the template in camel case."""

    @abc.abstractmethod
    def kernel(self, problem: P, schedule: S) -> Kernel:
        """The kernel's members and extents."""

    @final
    def instantiate(self, problem: P, schedule: S) -> tuple[KernelSource, ...]:
        """One unit: the problem and the schedule as structs of constants, and one call."""
        return (_unit(self.name, self.kernel(problem, schedule), schedule),)

    @final
    def launches(self, problem: P, schedule: S) -> tuple[Launch, ...]:
        """One launch over all items."""
        kernel = self.kernel(problem, schedule)
        source = _unit(self.name, kernel, schedule)
        inputs: list[Argument] = [InputArgument(index) for index in range(kernel.inputs)]
        leading = kernel.leading.expression
        return (
            Launch(
                kernel=source.digest,
                entry=source.entry,
                grid=(ceil_div(product(leading, kernel.items), kernel.block_items), 1, 1),
                block=(kernel.threads, 1, 1),
                shared_bytes=0,
                arguments=(*inputs, SizeArgument(leading), OutputArgument(0)),
            ),
        )


def fp32_bits(value: float) -> int:
    """The bits of the nearest fp32 number, as units pass floating-point constants."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def _unit(name: str, kernel: Kernel, schedule: Schedule) -> KernelSource:
    entry = f"wpk_{name}"
    head, *tail = name.split("_")
    function = head + "".join(part.capitalize() for part in tail)
    problem = [f"  using {key} = {value};" for key, value in kernel.types.items()]
    problem += [f"  static constexpr auto {key} = {value};" for key, value in kernel.names.items()]
    problem += [_constant(key, value) for key, value in kernel.constants.items()]
    parameters = "".join(f"const void* x{i}, " for i in range(kernel.inputs))
    inputs = ", ".join(f"x{i}" for i in range(kernel.inputs))
    lines = [
        f"#include <wpk/schedules/{name}.cuh>",
        "",
        *("struct Problem {", *problem, "};"),
        "",
        *("struct Schedule {", *(_constant(k, v) for k, v in schedule.parameters()), "};"),
        "",
        f"WPK_KERNEL({kernel.threads}) {entry}({parameters}int n, void* y) {{",
        f"  wpk::{function}<Problem, Schedule>({{{{{inputs}}}}}, n, y);",
        "}",
        f"WPK_EXPORT({entry})",
        "",
    ]
    return KernelSource(entry, "\n".join(lines))


def _constant(name: str, value: int) -> str:
    if isinstance(value, bool):
        return f"  static constexpr bool {name} = {str(value).lower()};"
    kind = "int" if -(2**31) <= value < 2**31 else "wpk::int64"
    return f"  static constexpr {kind} {name} = {value};"
