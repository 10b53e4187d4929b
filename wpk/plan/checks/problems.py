"""What must hold of a problem in itself: sizes, ranks, tensors, and the operands of its expressions."""

from collections.abc import Mapping
from dataclasses import fields
from math import prod

from wpk.dtypes import DType
from wpk.expression import Acc, Operand, leaves
from wpk.extent import MAX_SIZE, Extent
from wpk.plan.checks.values import MAX_PADDING, check_extent, check_shape
from wpk.plan.fields import MAX_BYTES, within, wrong
from wpk.problems import Fallback, FieldExpression, Problem, Tensor

_SIGNED = {"pad", "pad_end", "begin"}
"""Fields that may be negative."""

_ALIGNMENTS = (1, 2, 4, 8, 16)

MAX_LEAVES = 2**12
"""Of an expression; a chain of element-wise nodes has one or two for each node."""


def check_problem(problem: Problem, free: Mapping[str, int], path: str) -> None:
    """Check a problem at the tuned sizes of the free dimensions.

    Raises:
        PlanError: Naming the field, of which ``path`` is the problem's.
    """
    if isinstance(problem, Fallback):
        _check_fallback(problem, free, path)
        return
    for each in fields(problem):
        field = f"{path}.{each.name}"
        _check_sizes(getattr(problem, each.name), each.name in _SIGNED, free, field)
    _check_free(problem, path)
    for name, what in problem.contradictions():
        raise wrong(f"{path}.{name}", what)
    if not problem.pads_its_columns:
        raise wrong(
            f"{path}.y.padding", "it does not lie behind the columns, where kernels write it"
        )
    inputs = problem.reads()
    for index, access in enumerate((*inputs, *problem.writes())):
        if access is not None:
            field = f"{path}.y" if index == len(inputs) else f"{path}, operand {index}"
            _check_tensor(access.tensor, len(access.axes), field)
            if access.tensor.dtype is DType.FP64 and not problem.carries_double:
                raise wrong(field, f"is {DType.FP64}, which no kernel of this kind takes")
    for expression in problem.expressions():
        _check_expression(expression, f"{path}.{expression.field}")


def _check_fallback(problem: Fallback, free: Mapping[str, int], path: str) -> None:
    """Check the tensors of what ONNX Runtime computes; results are row-major."""
    for index, crossing in enumerate((*problem.x, *problem.results)):
        if crossing is None:
            continue
        field, access = f"{path}, tensor {index}", crossing.access
        _check_sizes(access.axes, False, free, field)
        _check_tensor(access.tensor, len(access.axes), field)
        names, elements = crossing.leading.names, prod(access.sizes)
        check_shape(crossing.shape, elements, names, free, f"{field}.shape")
    for index, crossing in enumerate(problem.results):
        tensor, sizes = crossing.access.tensor, crossing.access.sizes
        if tensor.strides != row_major(sizes) or tensor.padding:
            raise wrong(
                f"{path}.results[{index}]", f"{tensor.strides} over {sizes} is not row-major"
            )


def row_major(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of elements that lie side by side, the last axis innermost."""
    return tuple(prod(sizes[axis + 1 :]) for axis in range(len(sizes)))


def _check_sizes(value: object, signed: bool, free: Mapping[str, int], path: str) -> None:
    """Every number of a field is a size, alone or in a tuple; booleans are none."""
    match value:
        case bool():
            pass
        case int():
            within(path, value, -MAX_SIZE if signed else 1, MAX_SIZE)
        case float():
            if value != value:
                raise wrong(path, "is not a number")
        case Extent():
            check_extent(free, value, path)
            within(path, value.value, 1, MAX_SIZE)
        case None:
            pass
        case tuple():
            for each in value:
                _check_sizes(each, signed, free, path)


def _check_free(problem: Problem, path: str) -> None:
    """No extent is free but those that the kind passes at run time."""
    found = [getattr(problem, each.name) for each in fields(problem)]
    extents = [e for each in found for e in (each if isinstance(each, tuple) else (each,))]
    for extent in extents:
        if isinstance(extent, Extent) and extent.free is not None and extent not in problem.extents:
            raise wrong(path, f"{extent.free!r} decides more than what kernels are passed")


def _check_tensor(tensor: Tensor, rank: int, path: str) -> None:
    if len(tensor.strides) != rank:
        raise wrong(f"{path}.strides", f"{tensor.strides} for {rank} axes")
    for stride in tensor.strides:
        within(f"{path}.strides", stride, 0, MAX_BYTES)
    within(f"{path}.padding", tensor.padding, 0, MAX_PADDING)
    if tensor.alignment not in _ALIGNMENTS or tensor.alignment < tensor.dtype.bytes:
        raise wrong(f"{path}.alignment", f"{tensor.alignment} bytes for {tensor.dtype}")
    for stride in tensor.strides:
        if stride > 1 and stride * tensor.dtype.bytes % tensor.alignment:
            raise wrong(f"{path}.alignment", f"{tensor.alignment} bytes, with a stride of {stride}")


def _check_expression(told: FieldExpression, path: str) -> None:
    for count, leaf in enumerate(leaves(told.expression)):
        if count >= MAX_LEAVES:
            raise wrong(path, f"has more than {MAX_LEAVES} leaves")
        if isinstance(leaf, Operand) and not 0 <= leaf.index < told.operands:
            raise wrong(path, f"reads operand {leaf.index}, the problem has {told.operands}")
        if isinstance(leaf, Acc) and not told.follows:
            raise wrong(path, "asks for the result of a kernel that it does not follow")
