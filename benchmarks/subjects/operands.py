"""The operands of a problem on a GPU, as it lays them out, to execute kernels and library candidates on."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from wpk.device import CudaDevice, CudaGraph
from wpk.execution import Replay
from wpk.libraries.constant_layouts import lay_out
from wpk.libraries.cudnn import CudnnCandidate
from wpk.libraries.memory import Place, places
from wpk.libraries.reference import RandomCase
from wpk.problems import Problem

Array = NDArray[Any]

_POISON = 0xFF
"""Bytes of an output before it is written: not-a-number in every type."""


class Operands:
    """The memory of one case on a GPU; freed by `close`.

    Attributes:
        case: What they hold.
        inputs: Addresses of the operator's inputs; 0 for a constant one.
        output: Address of its output.
    """

    def __init__(self, device: CudaDevice, problem: Problem, case: RandomCase) -> None:
        """Allocate and write everything but a constant operand, whose layout a candidate decides."""
        self._device = device
        self._problem = problem
        self.case = case
        self._owned: list[int] = []
        self._laid_out: dict[str, tuple[int, ...]] = {}
        *inputs, self._place_of_output = places(problem, None)
        given = list(case.operands)
        if problem.constant_shape is not None:
            del given[1]
        self.inputs = [
            self._place(_image(place, values)) for place, values in zip(inputs, given, strict=True)
        ]
        if problem.constant_shape is not None:
            self.inputs.insert(1, 0)
        self.output = self._allocate(self._place_of_output.bytes)

    def close(self) -> None:
        """Free the memory."""
        while self._owned:
            self._device.free(self._owned.pop())

    def __enter__(self) -> Self:
        """The operands themselves."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    def pointers(self, candidate: CudnnCandidate) -> tuple[int, ...]:
        """What `CudnnCandidate.run` takes."""
        if candidate.layout is None:
            return (*self.inputs, self.output)
        if candidate.layout not in self._laid_out:
            image = lay_out(candidate.layout, self.case.operands[1])
            self._laid_out[candidate.layout] = self.with_constant(image)
        return self._laid_out[candidate.layout]

    def with_constant(self, image: Array) -> tuple[int, ...]:
        """Inputs and output with a constant operand that is written as it is given."""
        first, _, *others = self.inputs
        return (first, self._place(image.ravel()), *others, self.output)

    def poison(self) -> None:
        """Make the output's memory not-a-number."""
        size = self._place_of_output.bytes
        self._device.write(self.output, np.full(size, _POISON, np.uint8))

    def result(self) -> Array:
        """The output, over its domain."""
        memory = self._device.read(self.output, self._place_of_output.bytes)
        return np.array(self._place_of_output.view(memory))

    def run(self, candidate: CudnnCandidate) -> Array:
        """What a prepared candidate writes over poison.

        Raises:
            LaunchError: It failed.
        """
        pointers = self.pointers(candidate)
        self.poison()
        with Workspace(self._device, [candidate]) as workspace:
            candidate.run(pointers, workspace, self._device.stream)
            self._device.synchronize()
        return self.result()

    def _place(self, image: Array) -> int:
        address = self._allocate(image.nbytes)
        self._device.write(address, image.view(np.uint8))
        return address

    def _allocate(self, size: int) -> int:
        self._owned.append(self._device.allocate(max(1, size)))
        return self._owned[-1]


class Workspace:
    """Scratch memory that is enough for each of some prepared candidates; its address is given."""

    def __init__(self, device: CudaDevice, candidates: Sequence[CudnnCandidate]) -> None:
        """Measure; memory is taken when it is entered."""
        self._device = device
        self._size = max((candidate.workspace_bytes for candidate in candidates), default=0)
        self._address = 0

    def __enter__(self) -> int:
        """The address; 0 where no candidate needs any."""
        self._address = self._device.allocate(self._size) if self._size else 0
        return self._address

    def __exit__(self, *error: object) -> None:
        """Free it."""
        if self._address:
            self._device.free(self._address)


def capture(
    device: CudaDevice,
    candidate: CudnnCandidate,
    pointers: Sequence[int],
    workspace: int,
    repetitions: int,
) -> Replay:
    """A CUDA graph of a prepared candidate, run so often.

    Raises:
        LaunchError: It cannot be captured.
    """

    def enqueue() -> None:
        for _ in range(repetitions):
            candidate.run(pointers, workspace, device.stream)

    return CudaGraph(device.stream, enqueue)


def _image(place: Place, values: Array) -> Array:
    """The tensor's memory holding values over its domain, and zeros between."""
    memory = np.zeros(place.bytes, np.uint8)
    place.view(memory)[...] = values
    return memory
