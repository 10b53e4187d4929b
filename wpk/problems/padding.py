"""Where a problem's kernels write the padding of its output."""

from wpk.problems.attention import Attention
from wpk.problems.convolution import Convolution
from wpk.problems.matmul import Matmul


def pads_its_columns(problem: object) -> bool:
    """Whether padding lies behind the columns of a product, where alone its kernels write it.

    An output of a convolution, product or attention whose contiguous axis is another one can have no
    padding; problems of other kinds say themselves where theirs may lie.
    """
    if not isinstance(problem, Attention | Convolution | Matmul):
        return True
    columns = 1 if isinstance(problem, Convolution) else -1
    return problem.y.padding == 0 or problem.y.strides[columns] == 1
