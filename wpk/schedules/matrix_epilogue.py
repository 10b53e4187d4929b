"""How matrix-like kernels store: the members of a unit's problem that epilogue.cuh reads."""

from wpk.dtypes import DType
from wpk.expression import cpp_type, numbers_of
from wpk.problems import (
    ClampedConvolution,
    Convolution,
    Matmul,
    MomentsMatmul,
    NormedMatmul,
    Tensor,
)
from wpk.schedules.strided import constants_mask
from wpk.schedules.unit import Member, Type

_AXES = {
    Convolution: (0, 2, 3, 1),
    ClampedConvolution: (0, 2, 3, 1),
    Matmul: (0, 1, 2, 3),
    MomentsMatmul: (0, 1, 2, 3),
    NormedMatmul: (0, 1, 2, 3),
}
"""The row axes (outer, middle, inner) and the column axis of the output domain."""

_VECTOR_BYTES = 16
_COLUMNS = 8  # of 16 bits in a vector
_AT_ONCE = 8  # rows whose operands are under way at once


def epilogue_members(
    problem: Convolution | Matmul, max_width: int = 8, in_shared: int | None = None
) -> dict[str, Member]:
    """Return the types ``Y``, ``Operands``, ``Epilogue`` and the numbers ``operand_constants``, ``y_padding``.

    Args:
        problem: What is stored, and where.
        max_width: Columns that a thread stores together at most.
        in_shared: The operand that the kernel has in shared memory when it stores, if there is one.
    """
    axes = _AXES[type(problem)]
    width = min(max_width, store_width(problem))
    operands = [
        _strided(operand, min(width, _operand_width(problem, operand)), axes)
        for operand in problem.epilogue.operands
    ]
    if in_shared is not None:
        operands[in_shared] = f"wpk::InShared<{operands[in_shared]}>"
    return {
        "Y": Type(_strided(problem.y, width, axes)),
        "Operands": Type(f"wpk::Tensors<{', '.join(operands)}>"),
        "operand_constants": constants_mask(problem.epilogue.operands),
        "Epilogue": Type(cpp_type(problem.epilogue.expression)),
        "y_padding": problem.y.padding,
    }


def passed_bytes(problem: Convolution | Matmul) -> float:
    """Return the bytes that pass for an element of the output: its own, and those of operands that differ from row to row."""
    return float(problem.y.dtype.bytes + sum(each.dtype.bytes for each in _row_operands(problem)))


def stores_by_columns(problem: Convolution | Matmul) -> bool:
    """Return whether what becomes of a sum is the same in all rows, so that it is computed where mma leaves the sums.

    `kStoresByColumns` of column_epilogue.cuh says the same of a unit: of outputs of 16 bits in whole vectors.
    """
    stored = problem.y.dtype in (DType.FP16, DType.BF16) and store_width(problem) == _COLUMNS
    in_fp32 = numbers_of(problem.epilogue.expression) is DType.FP32
    return (
        stored and in_fp32 and not isinstance(problem, MomentsMatmul) and not _row_operands(problem)
    )


def fetched_together(problem: Convolution | Matmul) -> float:
    """Return the elements for whose operands a thread asks at once as it stores (tile_store.cuh); 0 where it asks for none.

    Where columns of the output lie apart, each of its elements has columns of its own, whose operands are asked for, too.
    """
    apart = problem.y.strides[_AXES[type(problem)][3]] != 1
    asked = problem.epilogue.operands if apart else _row_operands(problem)
    return float(_AT_ONCE * store_width(problem)) if asked else 0.0


def _row_operands(problem: Convolution | Matmul) -> list[Tensor]:
    rows = _AXES[type(problem)][:3]
    return [each for each in problem.epilogue.operands if any(each.strides[axis] for axis in rows)]


def store_width(problem: Convolution | Matmul) -> int:
    """Return the columns of ``y`` that one store writes: 1, 2, 4 or 8, so that no vector is partial."""
    width = min(problem.y.vector(_AXES[type(problem)][3]), _VECTOR_BYTES // problem.y.dtype.bytes)
    columns, groups = _columns(problem)
    while (columns * groups + problem.y.padding) % width or (groups > 1 and columns % width):
        width //= 2
    return width


def _operand_width(problem: Convolution | Matmul, operand: Tensor) -> int:
    """Columns of an operand that one load reads without leaving what may be read."""
    width = min(operand.vector(_AXES[type(problem)][3]), _VECTOR_BYTES // operand.dtype.bytes)
    columns, groups = _columns(problem)
    if problem.y.padding:
        return width if operand.padding >= problem.y.padding else 1
    while columns * groups % width or (groups > 1 and columns % width):
        width //= 2
    return width


def _columns(problem: Convolution | Matmul) -> tuple[int, int]:
    """Columns of a group, and groups."""
    if isinstance(problem, Convolution):
        return problem.k // problem.groups, problem.groups
    return problem.n, 1


def _strided(tensor: Tensor, width: int, axes: tuple[int, int, int, int]) -> str:
    """``wpk::Strided`` of a tensor: ``axes`` are the domain's three row axes and its columns."""
    strides = ", ".join(str(tensor.strides[axis]) for axis in axes)
    return f"wpk::Strided<{tensor.dtype.c_name}, {width}, {strides}>"
