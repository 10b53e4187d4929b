"""Gives every tensor its place: buffer, offset, strides, padding."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.lowering.free_axis import flattened, is_joinable
from wpk.lowering.placement import ALIGNMENT, Slot
from wpk.lowering.program import Buffer, Value
from wpk.lowering.refusal import RefusedError
from wpk.lowering.views import View, contiguous_strides


@dataclass
class MemoryMap:
    """Values and buffers as lowering goes along.

    Attributes:
        slots: Tensors that lie inside others.
        padded: Tensors whose rows of channels are padded to `ALIGNMENT` bytes.
        wholes: Shapes of the tensors that others lie in, without the leading axis.
        values: All values so far.
        buffers: All buffers so far.
    """

    slots: Mapping[str, Slot]
    padded: frozenset[str]
    wholes: Mapping[str, tuple[int, ...]]
    values: dict[str, Value] = field(default_factory=dict)
    buffers: dict[str, Buffer] = field(default_factory=dict)

    def home(self, name: str, dtype: DType, shape: tuple[int, ...], leading: Extent) -> View:
        """Return the memory to which a tensor is written; it is made on first use."""
        if name in self.values:
            return self.view(name)
        if 0 in shape:
            raise RefusedError(f"an empty tensor, of shape {shape}")
        slot = self.slots.get(name)
        if slot is None or slot.parent not in self.wholes:
            return self.alone(name, dtype, shape, leading)
        rest = self.wholes[slot.parent]
        seen = shape
        if slot.seen:
            seen = tuple(size or shape[0] for size in slot.seen)
            leading = leading if slot.seen[0] is None else Extent(seen[0])
        parent = self.home(slot.parent, dtype, (seen[0], *rest), leading)
        part = parent.sliced(slot.axis, slot.start, seen[slot.axis]).reshaped(shape)
        self.alias(name, part, part.shape)
        return self.view(name)

    def view(self, name: str) -> View:
        """Return a view of all of a tensor that has its place."""
        value = self.values[name]
        return View(
            name,
            value.dtype,
            value.leading,
            value.shape,
            value.strides,
            0,
            value.padding,
            value.alignment,
        )

    def at(self, view: View) -> str:
        """Return the name of a value that starts where the view starts and has the view's shape and strides."""
        if view.offset == 0:
            return view.source
        if not is_joinable(view.shape, view.strides):
            view = self._rest_of_rows(view)
        stem = name = f"{view.source}@{view.offset}"
        number = 1
        while name in self.values and self.values[name] != self._seen(name, view, view.shape):
            number += 1
            name = f"{stem}.{number}"
        self.alias(name, view, view.shape)
        return name

    def _rest_of_rows(self, view: View) -> View:
        """What lies from where a view begins to the end of each row of its source.

        Raises:
            RefusedError: It begins in another row than the first.
        """
        whole = self.view(view.source)
        rest = whole.shape[-1] - view.offset
        if rest <= 0 or whole.strides[-1] != 1:
            raise RefusedError(
                f"a part of '{view.source}', shape {whole.shape}, that begins at {view.offset}"
            )
        return whole.sliced(len(whole.shape) - 1, view.offset, rest)

    def alias(self, name: str, view: View, logical_shape: tuple[int, ...]) -> None:
        """Give a view a name of its own: a tensor within another, or another's reshape."""
        self.values[name] = self._seen(name, view, logical_shape)

    def _seen(self, name: str, view: View, logical_shape: tuple[int, ...]) -> Value:
        base = self.values[view.source]
        return replace(
            base,
            name=name,
            leading=view.leading,
            shape=view.shape,
            strides=view.strides,
            padding=view.padding,
            offset=base.offset + view.offset * base.dtype.bytes,
            logical_shape=logical_shape,
        )

    def alone(self, name: str, dtype: DType, shape: tuple[int, ...], leading: Extent) -> View:
        """Give one tensor a buffer of its own, wherever it was to lie."""
        row = shape[-1]
        if name in self.padded:
            step = ALIGNMENT // dtype.bytes
            row = -(-row // step) * step
        value = Value(
            name=name,
            dtype=dtype,
            leading=leading,
            shape=shape,
            strides=contiguous_strides(shape, row),
            padding=row - shape[-1],
            buffer=name,
            offset=0,
            logical_shape=shape,
        )
        self.values[name] = value
        self.buffers[name] = Buffer(name, flattened(value).span())
        return self.view(name)
