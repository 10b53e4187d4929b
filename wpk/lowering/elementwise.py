"""Bodies without an anchor: element-wise graphs, copies, transposes."""

from wpk.lowering.anchors.base import LoweredProblem, stored
from wpk.lowering.collapse import collapse
from wpk.lowering.numbers import whole
from wpk.lowering.symbols import Computation
from wpk.lowering.views import View
from wpk.problems import Elementwise

_MAX_AXES = 5


def lower_elementwise(result: Computation, y: View) -> LoweredProblem:
    """Return the problem of an expression over a whole domain.

    Args:
        result: What the body computes; it has no anchor.
        y: The output's memory, seen with the shape of the domain.
    """
    views = [view.broadcast(y.shape, y.leading) for view in result.operands]
    shape, (target, *sources) = collapse([y, *views], _MAX_AXES, _row_of_one(y))
    problem = Elementwise(
        leading=target.leading,
        shape=shape,
        expression=stored(whole(result), y.dtype),
        inputs=tuple(view.tensor() for view in sources),
        y=target.tensor(),
    )
    return LoweredProblem(problem, tuple(views))


def _row_of_one(y: View) -> int | None:
    """Return the axis behind which padding lies if it has only one element; else None."""
    along = [axis for axis, stride in enumerate(y.strides) if stride == 1]
    if not y.padding or any(y.shape[axis] > 1 for axis in along):
        return None
    return along[-1] if along else None
