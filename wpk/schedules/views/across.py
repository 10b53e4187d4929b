"""Rows of a norm that lie across memory: the axes as normalisation_across.cuh walks them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from wpk.extent import Extent
from wpk.problems import Normalisation, Tensor
from wpk.schedules.strided import vector_widths, with_strides


@dataclass(frozen=True)
class AcrossView:
    """A norm and the axis of its outer ones along which memory lies.

    Attributes:
        problem: With a fixed leading extent set apart where it is that axis.
        row_axis: The number of the axis along which rows are neighbours.
        read_along_columns: Whether the inputs lie along rows' elements all the same.
        written_along_columns: Whether the output does.
    """

    problem: Normalisation
    row_axis: int
    read_along_columns: bool
    written_along_columns: bool

    @property
    def column_axis(self) -> int:
        """The axis of a row's elements."""
        return len(self.problem.outer)

    @property
    def outer(self) -> tuple[int | None, ...]:
        """The axes besides the leading one, the rows' and the elements'."""
        return tuple(a for a in range(1, len(self.problem.outer)) if a != self.row_axis)

    @property
    def shape(self) -> tuple[int, ...]:
        """All extents."""
        return (self.problem.leading.value, *self.problem.outer[1:], self.problem.cols)

    @property
    def rows(self) -> int:
        """Rows that are neighbours."""
        return self.shape[self.row_axis]

    @property
    def others(self) -> int:
        """Times that there are so many rows."""
        return prod(self.shape[:-1]) // max(1, self.rows)

    def axis(self, along_columns: bool) -> int:
        """Return the axis that neighbouring threads walk."""
        return self.column_axis if along_columns else self.row_axis

    def order(self, along_columns: bool) -> tuple[int | None, ...]:
        """Return a tensor's axes as the kernel has them, the one that is walked last."""
        first = (None, *self.outer)[-1]
        slow = self.axis(not along_columns)
        return 0, first, slow, self.axis(along_columns)

    @property
    def read_together(self) -> int:
        """Elements of an access to the inputs."""
        return self._together(_main(self.problem), self.read_along_columns, 0)

    @property
    def written_together(self) -> int:
        """Elements of an access to the output."""
        y = self.problem.y
        return self._together(y, self.written_along_columns, y.padding)

    def _together(self, tensor: Tensor | None, along_columns: bool, padding: int) -> int:
        if tensor is None:
            return 1
        axis = self.axis(along_columns)
        return vector_widths((tensor,), axis, self.shape[axis] + padding)[0]


def across_view(problem: Normalisation) -> AcrossView | None:
    """Return how a tile of neighbouring rows is walked; None where no tensor lies across the rows."""
    columns = len(problem.outer)
    for tensor in (problem.y, _main(problem)):
        if tensor is None or problem.lines > 1 or tensor.strides[columns] == 1:
            continue
        first = 0 if problem.leading.free is None else 1
        along = [
            a for a in range(first, columns) if tensor.strides[a] == 1 and problem.outer[a] > 1
        ]
        if along:
            return _seen(*_set_apart(problem, max(along, key=lambda axis: problem.outer[axis])))
    return None


def _seen(problem: Normalisation, axis: int) -> AcrossView:
    main = _main(problem)
    reads_across = main is not None and main.strides[axis] == 1
    return AcrossView(problem, axis, not reads_across, problem.y.strides[axis] != 1)


def _set_apart(problem: Normalisation, axis: int) -> tuple[Normalisation, int]:
    """A fixed leading extent whose rows are neighbours becomes an axis behind another of extent 1."""
    if axis > 0:
        return problem, axis
    return replace(
        problem,
        leading=Extent(1),
        outer=(1, problem.leading.value, *problem.outer[1:]),
        inputs=tuple(map(_split, problem.inputs)),
        y=_split(problem.y),
        epilogue=replace(problem.epilogue, operands=tuple(map(_split, problem.epilogue.operands))),
    ), 1


def _split(tensor: Tensor) -> Tensor:
    return with_strides(tensor, (0, *tensor.strides))


def _main(problem: Normalisation) -> Tensor | None:
    """The input with most elements."""
    shape = (problem.leading.value, *problem.outer[1:], *problem.row)
    return max(
        problem.inputs,
        key=lambda t: prod(n for n, stride in zip(shape, t.strides, strict=True) if stride),
        default=None,
    )
