"""A reduction's axes in the order of its kernel."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from wpk.extent import Extent
from wpk.problems import Reduction, Tensor
from wpk.schedules.strided import vector_widths, why_unaddressable, with_strides

OUTER_AXES, INNER_AXES = 4, 3
"""Axes of a problem that the kernel carries; one of the outer ones is the run-time one."""


@dataclass(frozen=True)
class ReductionView:
    """The axes in the kernel's order, by their number in the inputs' domain; None has extent 1.

    Attributes:
        problem: The problem with its run-time extent set apart from what is constant of it.
        order: Three outer axes behind the leading one; y's rows, or the inputs', run along the last.
        inner: Three reduced axes; the inputs' rows run along the last, unless along an outer axis.
        along_outer: Whether the inputs are contiguous along the last outer axis.
    """

    problem: Reduction
    order: tuple[int | None, ...]
    inner: tuple[int | None, ...]
    along_outer: bool

    @property
    def extents(self) -> tuple[int, ...]:
        """Extents of the three outer and the three inner axes."""
        sizes = (*self.problem.outer, *self.problem.inner)
        return tuple(1 if axis is None else sizes[axis] for axis in (*self.order, *self.inner))

    @property
    def vectors(self) -> tuple[int, ...]:
        """Elements worth loading at once."""
        axis = self.order[-1] if self.along_outer else self.inner[-1]
        if axis is None:
            return (1,)
        sizes = (*self.problem.outer, *self.problem.inner)
        padding = self.problem.y.padding if self.along_outer else 0
        return vector_widths(self.problem.inputs, axis, sizes[axis] + padding)


def view_of(problem: Reduction) -> ReductionView:
    """Return how the kernel walks a problem."""
    problem = _set_apart(problem)
    sizes, outer_count = (*problem.outer, *problem.inner), len(problem.outer)
    outer, inner = range(1, outer_count), range(outer_count, len(sizes))
    main = max(problem.inputs, key=lambda t: _elements(t, sizes), default=None)
    contiguous = _contiguous(main, outer, sizes)
    row = contiguous
    if problem.y.padding or contiguous is None:
        row = _contiguous(problem.y, outer, sizes)
    return ReductionView(
        problem,
        _last(outer, row, OUTER_AXES - 1),
        _last(inner, _contiguous(main, inner, sizes), INNER_AXES),
        along_outer=contiguous is not None and row == contiguous,
    )


def _set_apart(problem: Reduction) -> Reduction:
    """A fixed leading extent joins the constant axes; of ``factor * free``, the factor does.

    Otherwise threads could not walk along it, and images of batch 1 have their channels there.
    """
    leading = problem.leading
    factor = leading.value if leading.free is None else leading.factor
    outer = (leading.value // factor, factor, *problem.outer[1:])
    if factor == 1 or len(outer) > OUTER_AXES:
        return problem
    inputs = tuple(_split(tensor, factor) for tensor in problem.inputs)
    if why_unaddressable(inputs, (*outer, *problem.inner)) is not None:
        return problem
    operands = tuple(_split(tensor, factor) for tensor in problem.epilogue.operands)
    return replace(
        problem,
        leading=Extent(leading.value // factor, leading.free),
        outer=outer,
        inputs=inputs,
        y=_split(problem.y, factor),
        epilogue=replace(problem.epilogue, operands=operands),
    )


def _split(tensor: Tensor, factor: int) -> Tensor:
    return with_strides(tensor, (tensor.strides[0] * factor, *tensor.strides))


def _contiguous(tensor: Tensor | None, axes: range, sizes: Sequence[int]) -> int | None:
    """The longest of the axes along which a tensor is contiguous; one of extent 1 only to pad it."""
    if tensor is None:
        return None
    least = 1 if tensor.padding else 2
    found = [a for a in axes if tensor.strides[a] == 1 and sizes[a] >= least]
    return max(found, key=lambda axis: sizes[axis], default=None)


def _elements(tensor: Tensor, sizes: Sequence[int]) -> int:
    return prod(n for n, stride in zip(sizes, tensor.strides, strict=True) if stride != 0)


def _last(axes: range, last: int | None, count: int) -> tuple[int | None, ...]:
    """The axes with one of them at the end, filled up with None in front."""
    rest: list[int | None] = [axis for axis in axes if axis != last]
    if last is not None:
        rest.append(last)
    return tuple([None] * (count - len(rest)) + rest)
