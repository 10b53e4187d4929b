"""The CPU with library calls: no library runs there, so NumPy computes what it would.

A call computes the problem's definition in float64 and rounds it once. That says nothing about the
library: whoever checks a plan reports such a step as not executed here.
"""

from typing import Any

from wpk.emulator.child import EmulatorProcess
from wpk.emulator.emulator import Emulator
from wpk.errors import EngineError
from wpk.execution import BoundCall, Device, LibraryImage
from wpk.libraries.definition import define
from wpk.libraries.memory import Place, places
from wpk.libraries.offer import constant_layout
from wpk.problems import Problem


class Definitions:
    """Library calls computed by their definition, on the memory of a device."""

    def __init__(self, device: Device) -> None:
        """Begin with none."""
        self._device = device
        self._known: dict[str, tuple[Problem, tuple[Place, ...]]] = {}

    def load(self, image: LibraryImage) -> None:
        """Take note of what a call computes.

        Raises:
            EngineError: No library computes such a problem.
        """
        try:
            layout = constant_layout(image.problem, image.configuration)
        except ValueError as error:
            raise EngineError(
                f"{image.library} does not compute the step that the plan gives it: {error}",
                fix="optimize the model again with this version of wpk",
            ) from error
        self._known[image.digest] = image.problem, places(image.problem, layout)

    def call(self, call: BoundCall) -> None:
        """Compute the definition, and write over the output."""
        problem, (*inputs, output) = self._known[call.image]
        *sources, target = call.pointers
        operands = [
            place.view(self._device.read(address, place.bytes))
            for place, address in zip(inputs, sources, strict=True)
        ]
        memory = self._device.read(target, output.bytes)
        output.view(memory)[...] = define(problem, operands).astype(output.tensor.dtype.numpy)
        self._device.write(target, memory)


class CpuDevice(Emulator):
    """The emulator; library calls are computed by their definition. Arguments as there."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """See `Emulator`."""
        super().__init__(*arguments, **options)
        self._definitions = Definitions(self)

    def load_library(self, image: LibraryImage) -> None:
        """See `Definitions.load`."""
        self._definitions.load(image)

    def call_library(self, call: BoundCall) -> None:
        """See `Definitions.call`."""
        self._definitions.call(call)


class CpuProcess(EmulatorProcess):
    """The emulator in a process; library calls are computed by their definition, outside of it."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """See `EmulatorProcess`."""
        self._definitions = Definitions(self)
        super().__init__(*arguments, **options)

    def load_library(self, image: LibraryImage) -> None:
        """See `Definitions.load`."""
        self._definitions.load(image)

    def call_library(self, call: BoundCall) -> None:
        """See `Definitions.call`."""
        self._definitions.call(call)
