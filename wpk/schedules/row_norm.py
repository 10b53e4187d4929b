"""Rows that a product normalises as it reads them (row_norm.cuh): what its unit says, what schedules of it take."""

from collections.abc import Sequence

from wpk.problems import Convolution, Matmul, NormedMatmul, NormKind
from wpk.schedules.limit import Limit
from wpk.schedules.unit import Member, fp32_bits

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
    """Say why a kernel that takes rows as they are cannot compute the problem; None if it can."""
    if isinstance(problem, NormedMatmul):
        return "rows are normalised behind products of tiles, on tensor cores"
    return None


def norm_limits(problem: Matmul) -> Sequence[Limit]:
    """Return what rows that are normalised ask of a schedule."""
    return (_WHOLE_ROWS,) if isinstance(problem, NormedMatmul) else ()


def norm_members(problem: Matmul) -> dict[str, Member]:
    """Return the members that row_norm.cuh reads; none where rows are multiplied as they are."""
    if not isinstance(problem, NormedMatmul):
        return {}
    return {
        "row_is_centred": is_centred(problem),
        "row_epsilon": fp32_bits(problem.epsilon),
    }


def is_centred(problem: NormedMatmul) -> bool:
    """Whether rows lose their mean."""
    return problem.kind is NormKind.LAYER


def fragment_slots(problem: Convolution | Matmul) -> float:
    """Return the issue slots of a warp that looks at a fragment of its rows; 0 where it does not."""
    return _FRAGMENT_SLOTS[problem.kind] if isinstance(problem, NormedMatmul) else 0.0


def fragment_products(problem: Convolution | Matmul) -> int:
    """Return the products of a warp that looks at a fragment of its rows besides multiplying it by the matrix."""
    return _FRAGMENT_PRODUCTS[problem.kind] if isinstance(problem, NormedMatmul) else 0
