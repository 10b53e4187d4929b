"""Library calls on the CPU: no library runs there, so NumPy computes what it would.

A call computes the problem's definition in float64 and rounds it once. That says nothing about the
library: whoever checks a plan reports such a step as not executed here.
"""

from wpk.errors import EngineError
from wpk.execution import BoundCall, Device, LibraryImage
from wpk.libraries.definition import define
from wpk.libraries.memory import Place, places
from wpk.libraries.registry import find_library
from wpk.problems import Problem


class NumpyLibraries:
    """Libraries of any device: a call reads its memory, computes here, and writes to it."""

    def __init__(self) -> None:
        """Begin with nothing that can be called."""
        self._ready: dict[str, tuple[Problem, tuple[Place, ...]]] = {}

    def load(self, image: LibraryImage, device: object) -> int:
        """Take note of what a call computes; it needs no scratch memory.

        Raises:
            EngineError: No library computes such a problem.
        """
        try:
            layout = find_library(image.library).constant_layout(image.problem, image.configuration)
        except ValueError as error:
            raise EngineError(
                f"{image.library} does not compute the step that the plan gives it: {error}",
                fix="optimize the model again with this version of wpk",
            ) from error
        self._ready[image.digest] = image.problem, places(image.problem, layout)
        return 0

    def call(self, call: BoundCall, device: Device) -> None:
        """Compute the definition, and write over the output."""
        problem, (*inputs, output) = self._ready[call.image]
        *sources, target = call.pointers
        operands = [
            place.view(device.read(address, place.bytes))
            for place, address in zip(inputs, sources, strict=True)
        ]
        memory = device.read(target, output.bytes)
        output.view(memory)[...] = define(problem, operands).astype(output.tensor.dtype.numpy)
        device.write(target, memory)

    def close(self) -> None:
        """Nothing is loaded."""
