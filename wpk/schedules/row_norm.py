"""Rows that a product normalises as it reads them (row_norm.cuh), or stores with their moments (row_moments.cuh).

What its unit says, and what schedules of it take.
"""

from collections.abc import Sequence
from dataclasses import replace

from wpk.performance import Columns, Work
from wpk.problems import (
    Convolution,
    Matmul,
    MomentsMatmul,
    NormedMatmul,
    NormKind,
    Tensor,
    moments_group,
    moments_of_row,
    numbers_of_group,
)
from wpk.schedules.limit import Limit
from wpk.schedules.unit import Member, Type, fp32_bits
from wpk.targets import Target

_FRAGMENT_SLOTS = {NormKind.LAYER: 12.0, NormKind.RMS: 4.0}
"""Issue slots of a warp for the moments of a fragment, 16 rows of 16 elements; from nvdisasm's listings."""

_FRAGMENT_PRODUCTS = {NormKind.LAYER: 3, NormKind.RMS: 2}
"""Products of 16 rows, 8 columns and 16 terms (mma.sync) for them."""

PRODUCT_COLUMNS = 8
"""Columns of such a product."""

_WHOLE_ROWS = Limit(
    "split == 1",
    "a row is normalised by all of its elements, of which a part of a reduction has some",
)


def why_normed(problem: Matmul) -> str | None:
    """Say why a kernel that takes and stores rows as they are cannot compute the problem; None if it can."""
    if isinstance(problem, NormedMatmul):
        return "rows are normalised behind products of tiles, on tensor cores"
    if isinstance(problem, MomentsMatmul):
        return "moments of rows are stored behind products of tiles, on tensor cores"
    return None


def norm_limits(problem: Matmul, columns: str = "block_n") -> Sequence[Limit]:
    """Return what rows that are normalised, or stored with their moments, ask of a schedule.

    Args:
        problem: The product.
        columns: Those that a warp has, as limits say it.
    """
    return (_WHOLE_ROWS,) if looks_at_rows(problem) else moments_limits(problem, columns)


def moments_limits(problem: Matmul, columns: str = "block_n") -> Sequence[Limit]:
    """Return what rows that are stored with their moments ask of a schedule.

    Args:
        problem: The product.
        columns: Those that a warp has, as limits say it.
    """
    if not isinstance(problem, MomentsMatmul):
        return ()
    group = moments_group(problem.n)
    whole = f"moments are of {group} columns, which a warp has together"
    return (Limit(f"{columns} % {group} == 0", whole),)


def norm_members(problem: Matmul) -> dict[str, Member]:
    """Return the members that row_norm.cuh and row_moments.cuh read; none of rows as they are."""
    if isinstance(problem, MomentsMatmul):
        return {"Moments": _placed(problem.moments, problem.kind)}
    if not isinstance(problem, NormedMatmul):
        return {}
    members: dict[str, Member] = {
        "row_is_centred": is_centred(problem),
        "row_epsilon": fp32_bits(problem.epsilon),
    }
    if problem.moments is not None:
        members["GivenMoments"] = _placed(problem.moments, problem.kind)
    return members


def _placed(moments: Tensor, kind: NormKind) -> Type:
    """Moments of rows; an access takes those of a group."""
    outer, middle, inner, one = moments.strides
    return Type(f"wpk::Strided<float, {numbers_of_group(kind)}, {outer}, {middle}, {inner}, {one}>")


def is_centred(problem: NormedMatmul) -> bool:
    """Whether rows lose their mean."""
    return problem.kind is NormKind.LAYER


def looks_at_rows(problem: Convolution | Matmul) -> bool:
    """Whether a product computes the moments of the rows that it reads."""
    return isinstance(problem, NormedMatmul) and problem.moments is None


def fragment_slots(problem: Convolution | Matmul) -> float:
    """Return the issue slots of a warp that looks at a fragment of its rows; 0 where it does not."""
    if not isinstance(problem, NormedMatmul) or not looks_at_rows(problem):
        return 0.0
    return _FRAGMENT_SLOTS[problem.kind]


def fragment_products(problem: Convolution | Matmul) -> int:
    """Return the products of a warp that looks at a fragment of its rows besides multiplying it by the matrix."""
    if not isinstance(problem, NormedMatmul) or not looks_at_rows(problem):
        return 0
    return _FRAGMENT_PRODUCTS[problem.kind]


def moments_moved(
    work: Work, problem: Convolution | Matmul, columns: Columns, target: Target
) -> Work:
    """Add what moments of rows take: those that a tile reads, which its end waits for, and those that it stores."""
    if isinstance(problem, MomentsMatmul):
        stored = moments_of_row(problem.n, problem.kind) * problem.moments.dtype.bytes
        beside = 1 + stored / (problem.n * problem.y.dtype.bytes)
        return replace(work, store_bytes=work.store_bytes * beside)
    if isinstance(problem, NormedMatmul) and problem.moments is not None:
        row = moments_of_row(problem.k, problem.kind) * problem.moments.dtype.bytes
        read = columns["block_m"] * row / target.transaction_bytes
        return replace(
            work,
            block_transactions=work.block_transactions + read,
            end_fetches=work.end_fetches + 1,
        )
    return work
