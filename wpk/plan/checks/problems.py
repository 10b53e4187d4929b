"""What must hold of a problem in itself: sizes, ranks, tensors, and the operands of its expressions."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from math import isfinite

from wpk.expression import Acc, Expression, Operand, leaves
from wpk.extent import Extent
from wpk.plan.checks.values import MAX_PADDING, check_extent
from wpk.plan.codec import wrong
from wpk.plan.fields import MAX_BYTES, MAX_SIZE, within
from wpk.plan.footprint import accesses
from wpk.problems import (
    Attention,
    ClampedConvolution,
    Convolution,
    Elementwise,
    Epilogue,
    Matmul,
    Normalisation,
    Pad,
    Pooling,
    Problem,
    Reduction,
    Resize,
    Tensor,
)
from wpk.problems.padding import pads_its_columns

_SIGNED = {"pad", "pad_end", "begin"}
"""Fields that may be negative."""

_ALIGNMENTS = (1, 2, 4, 8, 16)

MAX_LEAVES = 2**12
"""Of an expression; a chain of element-wise nodes has one or two for each node."""


def check_problem(problem: Problem, free: Mapping[str, int], path: str) -> None:
    """Check a problem at the tuned sizes.

    Args:
        problem: What a step computes.
        free: The free dimensions.
        path: Field of the problem.

    Raises:
        PlanError: Naming the field.
    """
    for each in fields(problem):
        field = f"{path}.{each.name}"
        _check_sizes(getattr(problem, each.name), each.name in _SIGNED, free, field)
    _check_free(problem, path)
    _check_kind(problem, path)
    if not pads_its_columns(problem):
        raise wrong(
            f"{path}.y.padding", "it does not lie behind the columns, where kernels write it"
        )
    inputs, output = accesses(problem)
    for index, access in enumerate((*inputs, output)):
        if access is not None:
            field = f"{path}.y" if index == len(inputs) else f"{path}, operand {index}"
            tensor, extents = access
            _check_tensor(tensor, len(extents), field)
    for name, expression, operands, follows in _expressions(problem):
        _check_expression(expression, operands, follows, f"{path}.{name}")


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
        case tuple():
            for each in value:
                _check_sizes(each, signed, free, path)


def _check_free(problem: Problem, path: str) -> None:
    """One extent is passed at run time; no other is free."""
    found = [getattr(problem, each.name) for each in fields(problem)]
    extents = [e for each in found for e in (each if isinstance(each, tuple) else (each,))]
    for extent in extents:
        if isinstance(extent, Extent) and extent.free is not None and extent != problem.leading:
            raise wrong(path, f"{extent.free!r} decides more than the leading extent")


def _check_kind(problem: Problem, path: str) -> None:
    """What only one kind of problem says."""
    match problem:
        case Convolution():
            for name, channels in (("c", problem.c), ("k", problem.k)):
                if channels % problem.groups:
                    raise wrong(f"{path}.{name}", f"{channels} in {problem.groups} groups")
            if isinstance(problem, ClampedConvolution) and problem.pad != (0, 0):
                raise wrong(f"{path}.pad", f"{problem.pad}; a clamped convolution has none")
        case Reduction() | Normalisation():
            _leads(problem.outer, problem.leading, f"{path}.outer")
        case Elementwise():
            _leads(problem.shape, problem.leading, f"{path}.shape")
        case Pad():
            _leads(problem.x_shape, problem.leading, f"{path}.x_shape")
            _leads(problem.y_shape, problem.leading, f"{path}.y_shape")
            if len({len(problem.x_shape), len(problem.y_shape), len(problem.begin)}) != 1:
                raise wrong(f"{path}.begin", "shapes and begin have different ranks")
            if problem.begin[0] != 0:
                raise wrong(f"{path}.begin", f"{problem.begin[0]} along the leading axis")
        case Resize():
            for scale in problem.scale:
                if not isfinite(scale) or scale <= 0:
                    raise wrong(f"{path}.scale", f"{scale} is no scale")
        case Pooling():
            for pad, window in zip(
                (*problem.pad, *problem.pad_end), problem.window * 2, strict=True
            ):
                within(f"{path}.pad", pad, -MAX_SIZE, MAX_SIZE - window)


def _leads(shape: tuple[int, ...], leading: Extent, path: str) -> None:
    if not shape or shape[0] != leading.value:
        raise wrong(path, f"{shape} does not begin with the leading extent {leading.value}")


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


def _expressions(problem: Problem) -> Iterator[tuple[str, Expression, int, bool]]:
    """Each expression with its field, the number of its operands, and whether it follows a kernel's sum."""
    if isinstance(problem, Elementwise):
        yield "expression", problem.expression, len(problem.inputs), False
    if isinstance(problem, Reduction | Normalisation):
        yield "prologue", problem.prologue, len(problem.inputs), False
    epilogue: Epilogue | None = None
    if isinstance(problem, Convolution | Matmul | Pooling | Reduction | Normalisation):
        epilogue = problem.epilogue
    elif isinstance(problem, Attention):
        epilogue = problem.scores
    if epilogue is not None:
        yield "epilogue", epilogue.expression, len(epilogue.operands), True


def _check_expression(expression: Expression, operands: int, follows: bool, path: str) -> None:
    for count, leaf in enumerate(leaves(expression)):
        if count >= MAX_LEAVES:
            raise wrong(path, f"has more than {MAX_LEAVES} leaves")
        if isinstance(leaf, Operand) and not 0 <= leaf.index < operands:
            raise wrong(path, f"reads operand {leaf.index}, the problem has {operands}")
        if isinstance(leaf, Acc) and not follows:
            raise wrong(path, "asks for the result of a kernel that it does not follow")
