"""A kernel in a chain of early launches whose constants are cold, and whose other inputs were just written.

    copy a -> a', kernel (a', constants 0) -> y, copy a -> a', kernel (a', constants 1) -> y, ...

So it is in an engine: weights come from global memory, activations lie in L2, and the kernel in front still runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from subjects.scratch import scratch
from wpk.dtypes import DType
from wpk.execution import BoundLaunch, Device
from wpk.expression import Operand
from wpk.extent import Extent
from wpk.kernel_source import KernelSource
from wpk.launch import Launch
from wpk.plan.binding import StepAddresses, bind_launch
from wpk.problems import Elementwise, Problem, Tensor
from wpk.schedules import packings
from wpk.schedules.registry import TEMPLATE_OF

COPY = "elementwise"
LENGTH = 32
"""Kernels of a chain, each with constants of its own."""


@dataclass(frozen=True)
class Subject:
    """A problem with the schedule that computes it.

    Attributes:
        problem: Without free dimensions.
        template: Name of its template.
        schedule: Of the template, launched early.
    """

    problem: Problem
    template: str
    schedule: Any

    @property
    def source(self) -> KernelSource:
        """Its kernel."""
        (source,) = TEMPLATE_OF[self.template].instantiate(self.problem, self.schedule)
        return source

    @property
    def launch(self) -> Launch:
        """How it is launched."""
        (launch,) = TEMPLATE_OF[self.template].launches(self.problem, self.schedule)
        return launch


def copy_of(elements: int) -> Subject:
    """A kernel that copies so many elements of 16 bits, a multiple of 8."""
    flat = Tensor(DType.FP16, (elements, 1))
    problem = Elementwise(Extent(1), (1, elements), Operand(0), (flat,), flat)
    schedule = TEMPLATE_OF[COPY].schedule_type(vector=8, items=1, threads=128, early=1)
    return Subject(problem, COPY, schedule)


class ColdChain:
    """The memory of a chain, and its launches.

    Attributes:
        length: Kernels of the subject in it.
        output: Address of what the last one wrote.
        output_bytes: How much that is.
    """

    def __init__(self, device: Device, subject: Subject, length: int = LENGTH) -> None:
        """Allocate and fill; the numbers are small, of 16 bits, and the same at every call."""
        self._device, self._subject, self.length = device, subject, length
        self._random = np.random.default_rng(0)
        self._launch = subject.launch
        reads, sizes = subject.problem.reads(), list(_input_bytes(subject))
        self._is_constant = [each is None or each.tensor.constant for each in reads]
        self._element = tuple(2 if each is None else each.tensor.dtype.bytes for each in reads)
        self._sizes = sizes
        self._origins = [self._placed(size) for size in sizes]
        shared = [self._placed(size) for size in sizes]
        self._turns = [
            tuple(
                self._placed(size) if constant else address
                for address, size, constant in zip(shared, sizes, self._is_constant, strict=True)
            )
            for _ in range(length)
        ]
        (output,) = subject.problem.writes()
        self.output_bytes = output.span_bytes({})
        self.output = device.allocate(self.output_bytes)
        self._workspace, self._counters = scratch(device, [self._launch])

    @property
    def copies(self) -> tuple[Subject, ...]:
        """The kernels that write what is no constant."""
        sizes = {s for s, own in zip(self._sizes, self._is_constant, strict=True) if not own}
        return tuple(copy_of(size // 2) for size in sorted(sizes))

    def launches(self, kernel: str) -> list[BoundLaunch]:
        """The chain; ``kernel`` is the digest of what computes the problem."""
        launch = replace(self._launch, kernel=kernel)
        found = []
        for inputs in self._turns:
            for index, address in enumerate(inputs):
                if not self._is_constant[index]:
                    found.append(self._copying(self._origins[index], address, self._sizes[index]))
            found.append(self._bound(launch, inputs, self._element, self.output))
        return found

    def _copying(self, source: int, target: int, size: int) -> BoundLaunch:
        return self._bound(copy_of(size // 2).launch, (source,), (2,), target)

    def _bound(
        self, launch: Launch, inputs: tuple[int, ...], element: tuple[int, ...], output: int
    ) -> BoundLaunch:
        places = StepAddresses(inputs, element, (output,), self._workspace, self._counters)
        return bind_launch(launch, places, {})

    def _placed(self, size: int) -> int:
        values = self._random.standard_normal(-(-size // 2)).astype(np.float16) / 16
        address = self._device.allocate(values.nbytes)
        self._device.write(address, values.view(np.uint8))
        return address


def _input_bytes(subject: Subject) -> Iterator[int]:
    problem = subject.problem
    for each in problem.reads():
        if each is not None:
            yield each.span_bytes({})
            continue
        packing = TEMPLATE_OF[subject.template].packing(problem, subject.schedule)
        assert packing is not None
        yield 2 * prod(packings.packed_shape(packing, problem, 2))
