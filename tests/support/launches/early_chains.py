"""Chains of early launches round one kernel: it reads what was just written, and writes over what is still read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from support.launches import slow_copies
from support.launches.early_kernels import Case, operands, schedule
from support.launches.launch_kernels import compiled
from support.launches.slow_copies import WORD, slow_copy
from wpk.dims import evaluate
from wpk.execution import BoundLaunch, Device
from wpk.launch import CounterArgument, WorkspaceArgument
from wpk.plan.binding import StepAddresses, bind_launch
from wpk.schedules.registry import TEMPLATE_OF


@dataclass(frozen=True)
class Chain:
    """Launches, and where results lie.

    Attributes:
        launches: All but the first early.
        results: Addresses of two results, of two different inputs.
        bytes: Of a result.
    """

    launches: tuple[BoundLaunch, ...]
    results: tuple[int, int]
    bytes: int

    def alone(self) -> tuple[BoundLaunch, ...]:
        """The same launches, none of them early."""
        return tuple(replace(launch, attributes=()) for launch in self.launches)


class Bench:
    """A case's kernel and its memory on a device."""

    def __init__(self, device: Device, case: Case, template: Any = None) -> None:
        """Load and fill; another template may stand in for the case's own."""
        self.device = device
        template = template or TEMPLATE_OF[case.template]
        chosen = schedule(case, 1)
        (source,) = template.instantiate(case.problem, chosen)
        (self.launch,) = template.launches(case.problem, chosen)
        device.load(compiled(source))
        device.load(slow_copies.image())
        first, second = operands(case, seed=1), operands(case, seed=2)
        self.bytes = _words(int(np.prod(case.output)) * case.problem.y.dtype.bytes)
        self._starts = (self.place(first[0]), self.place(second[0]))
        self._input_bytes = _words(first[0].nbytes)
        self._inputs = tuple(self.place(array) for array in first)
        self._sizes = tuple(array.itemsize for array in first)
        self.output = self.place(np.zeros(self.bytes, np.uint8))
        self._workspace = self.place(
            np.full(max(self._asked(WorkspaceArgument), 16), 255, np.uint8)
        )
        self._counters = self.place(np.zeros(max(self._asked(CounterArgument), 4), np.int32))

    def _asked(self, kind: type[WorkspaceArgument] | type[CounterArgument]) -> int:
        found = [a for a in self.launch.arguments if isinstance(a, kind)]
        sizes = [a.bytes if isinstance(a, WorkspaceArgument) else a.count for a in found]
        return evaluate(sizes[0], {}) if sizes else 0

    def place(self, array: NDArray[Any]) -> int:
        """The address of a copy of an array, up to whole words."""
        data = np.zeros(_words(array.nbytes), np.uint8)
        data[: array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        address = self.device.allocate(data.nbytes)
        self.device.write(address, data)
        return address

    def kernel(self) -> BoundLaunch:
        """The case's kernel, from the first input to the output."""
        addresses = StepAddresses(
            self._inputs, self._sizes, (self.output,), self._workspace, self._counters
        )
        return bind_launch(self.launch, addresses, {})

    def chain(self) -> Chain:
        """Twice: an input is written, read by the kernel, its output copied away.

        The second input is written over the first, and the second output over the first, while a
        small kernel lies between them and whoever reads them.
        """
        results = tuple(self.place(np.zeros(self.bytes, np.uint8)) for _ in range(2))
        small = [self.place(np.zeros(WORD, np.uint8)) for _ in range(2)]
        launches: list[BoundLaunch] = []
        for start, result in zip(self._starts, results, strict=True):
            launches += [
                slow_copy(start, self._inputs[0], self._input_bytes),
                self.kernel(),
                slow_copy(self.output, result, self.bytes),
                slow_copy(small[0], small[1], WORD),
            ]
        launches[0] = replace(launches[0], attributes=())
        return Chain(tuple(launches), (results[0], results[1]), self.bytes)

    def read(self, chain: Chain) -> list[bytes]:
        """Both results."""
        return [self.device.read(address, chain.bytes).tobytes() for address in chain.results]


def _words(size: int) -> int:
    return -(-size // WORD) * WORD
