"""A step on the reference's values: what it is given, and what it may leave; all candidates share it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wpk.blocks import by_blocks, put
from wpk.checks.allowed import WordRanges, allow, same
from wpk.checks.compare import Comparison, Floats, compare
from wpk.checks.float64_nodes import Array
from wpk.checks.operator_reference import Reference
from wpk.checks.region import OutputRegion
from wpk.dims import evaluate
from wpk.engine import view
from wpk.execution import Bytes
from wpk.plan import Step, Tensors


@dataclass(frozen=True)
class StepCase:
    """What a step works on, and what should become of it.

    Attributes:
        images: Its buffers before, by name, the output poisoned.
        output: The output in the image of its buffer.
        expected: Its elements, as an ONNX tensor.
        tolerance: What they may differ by; None asks for equality.
        is_copy: Whether the step copies what may be a part of the tensor: then ``expected`` lies over
            the domain of its problem.
    """

    images: dict[str, Bytes]
    output: OutputRegion
    expected: Array
    tolerance: Floats | None
    is_copy: bool

    @property
    def bytes(self) -> int:
        """Memory that it takes beside the reference's."""
        return sum(each.size for each in self.images.values()) + 2 * self.output.image.size

    def fits(self, after: Mapping[str, Bytes]) -> bool:
        """Whether every byte is what it may be; if not, the other methods say what is wrong, if anything."""
        target = self.output.value.buffer
        return (
            self._allowed is not None
            and self._allowed.holds(after[target])
            and all(same(after[name], self.images[name]) for name in self.images.keys() - {target})
        )

    def compare(self, after: Mapping[str, Bytes]) -> Comparison:
        """Compare the elements with what they should be."""
        there = self._elements(after[self.output.value.buffer])
        elements = np.empty(there.shape, there.dtype)
        put(elements, there)
        return compare(elements, self.expected, self.tolerance)

    def stray(self, after: Mapping[str, Bytes]) -> int:
        """Return the bytes outside the output that changed."""
        changed = 0
        for name, image in self.images.items():
            own = self.output.mask() if name == self.output.value.buffer else None
            changed += _changed(image, after[name], own)
        return changed

    def dirty_padding(self, after: Mapping[str, Bytes]) -> int:
        """Count the elements of padding that are not zero."""
        return replace(self.output, image=after[self.output.value.buffer]).dirty_padding()

    @cached_property
    def _allowed(self) -> WordRanges | None:
        return allow(self.output, self._elements, self.expected, self.tolerance)

    def _elements(self, image: Bytes) -> Array:
        if self.is_copy:
            return replace(self.output, image=image).elements()
        return view(self.output.value, image[self.output.value.offset :], self.output.dims)


def _changed(before: Bytes, after: Bytes, own: NDArray[np.bool_] | None) -> int:
    """Count the bytes that differ and are not a step's own."""

    def count(block: slice) -> int:
        differs = after[block] != before[block]
        if own is not None:
            differs &= ~own[block]
        return int(np.count_nonzero(differs))

    return sum(by_blocks(before.size, count))


def prepare(
    tensors: Tensors,
    step: Step,
    dims: Mapping[str, int],
    memory: Mapping[str, Array],
    result: Reference | None,
) -> StepCase:
    """Return a step on the reference's values.

    Args:
        tensors: Say where they lie.
        step: Whose tensors these are.
        dims: Values of the free dimensions.
        memory: The reference's tensors as they lie in memory.
        result: What the step should give; None for a copy, which should give what memory says.
    """
    target = tensors.values[step.operator.outputs[0]]
    names = (*step.inputs, *step.operator.outputs)
    touched = {tensors.values[name].buffer for name in names if name in tensors.values}
    images = {name: _image(tensors, name, dims, memory) for name in touched}
    written = step.operator.problem.accesses()[1]
    output = OutputRegion(images[target.buffer], target, written, dims)
    if result is None:
        expected, tolerance = output.elements().copy(), None
    else:
        expected, tolerance = result.outputs[target.name], result.tolerances.get(target.name)
    output.poison()
    return StepCase(images, output, expected, tolerance, result is None)


def _image(
    tensors: Tensors, buffer: str, dims: Mapping[str, int], memory: Mapping[str, Array]
) -> Bytes:
    """A buffer's bytes, with every tensor that lies in it and is known."""
    image = np.zeros(evaluate(tensors.buffers[buffer].bytes, dims), np.uint8)
    for value in tensors.values.values():
        if value.buffer == buffer and value.name in memory:
            elements = view(value, image[value.offset :], dims)
            put(elements, memory[value.name].reshape(elements.shape))
    return image
