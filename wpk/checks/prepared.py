"""A step on the reference's values: what it is given, and what it may leave; all candidates share it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from wpk.blocks import by_blocks, put
from wpk.checks.allowance import Allowance
from wpk.checks.allowed import WordRanges, allow, same
from wpk.checks.compare import Comparison, compare, compare_by_floor
from wpk.checks.float64_nodes import Array
from wpk.checks.operator_reference import Reference
from wpk.checks.region import OutputRegion
from wpk.dims import evaluate
from wpk.engine import view
from wpk.execution import Bytes
from wpk.plan import Step, Tensors
from wpk.reused_memory import empty


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
        beside: The other outputs, each on the same images; a step that copies has none.
    """

    images: dict[str, Bytes]
    output: OutputRegion
    expected: Array
    tolerance: Allowance | None
    is_copy: bool
    beside: tuple[StepCase, ...] = ()

    @property
    def bytes(self) -> int:
        """Memory that it takes beside the reference's."""
        intervals = sum(2 * each.output.image.size * each._kinds for each in self._written)
        return sum(each.size for each in self.images.values()) + intervals

    def fits(self, after: Mapping[str, Bytes]) -> bool:
        """Whether every byte is what it may be; if not, the other methods say what is wrong, if anything."""
        buffers = {each.output.value.buffer for each in self._written}
        return (
            len(buffers)
            == len(self._written)  # else outputs are in one buffer, and judged one by one
            and all(each._holds(after[each.output.value.buffer]) for each in self._written)
            and all(same(after[name], self.images[name]) for name in self.images.keys() - buffers)
        )

    def compare(self, after: Mapping[str, Bytes]) -> Comparison:
        """Compare the elements with what they should be, of all outputs."""
        first, *others = (each._compared(after) for each in self._written)
        return sum(others, first)

    def _compared(self, after: Mapping[str, Bytes]) -> Comparison:
        there = self._elements(after[self.output.value.buffer])
        elements = empty(there.shape, there.dtype)
        put(elements, there)
        allowed = self.tolerance
        if allowed is None:
            return compare(elements, self.expected, None)
        found = None
        if allowed.floor is not None:
            found = compare_by_floor(elements, self.expected, allowed.floor)
        return found or compare(elements, self.expected, allowed.whole)

    def stray(self, after: Mapping[str, Bytes]) -> int:
        """Return the bytes outside the outputs that changed."""
        changed = 0
        for name, image in self.images.items():
            masks = [e.output.mask() for e in self._written if e.output.value.buffer == name]
            own = reduce(np.logical_or, masks) if masks else None
            changed += _changed(image, after[name], own)
        return changed

    def dirty_padding(self, after: Mapping[str, Bytes]) -> int:
        """Count the elements of padding that are not zero."""
        outputs = [each.output for each in self._written]
        found = (replace(each, image=after[each.value.buffer]) for each in outputs)
        return sum(each.dirty_padding() for each in found)

    @property
    def _written(self) -> tuple[StepCase, ...]:
        return (self, *self.beside)

    def _holds(self, image: Bytes) -> bool:
        """Whether every byte of the output's buffer is what it may be, or is allowed at least."""
        at_least = self._at_least
        return (at_least is not None and at_least.holds(image)) or (
            self._in_whole is not None and self._in_whole.holds(image)
        )

    @property
    def _kinds(self) -> int:
        """How many kinds of intervals are held, or will be."""
        return 2 if vars(self).get("_at_least") is not None and "_in_whole" in vars(self) else 1

    @cached_property
    def _at_least(self) -> WordRanges | None:
        floor = None if self.tolerance is None else self.tolerance.floor
        return None if floor is None else allow(self.output, self._elements, self.expected, floor)

    @cached_property
    def _in_whole(self) -> WordRanges | None:
        tolerance = None if self.tolerance is None else self.tolerance.whole
        return allow(self.output, self._elements, self.expected, tolerance)

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
    names = (*step.inputs, *step.operator.outputs)
    touched = {tensors.values[name].buffer for name in names if name in tensors.values}
    images = {name: _image(tensors, name, dims, memory) for name in touched}
    found = list[StepCase]()
    for name, written in zip(step.operator.outputs, step.operator.problem.writes(), strict=True):
        target = tensors.values[name]
        output = OutputRegion(images[target.buffer], target, written, dims)
        if result is None:
            expected, tolerance = output.elements().copy(), None
        else:
            expected, tolerance = result.outputs[name], result.tolerances.get(name)
        found.append(StepCase(images, output, expected, tolerance, result is None))
    for each in found:
        each.output.poison()
    first, *others = found
    return replace(first, beside=tuple(others))


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
