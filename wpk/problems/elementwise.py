"""One expression over a whole domain; copies, transposes, slices and casts are its simplest forms."""

from dataclasses import dataclass

from wpk.expression import Expression
from wpk.extent import Extent
from wpk.problems.operand import Tensor


@dataclass(frozen=True)
class Elementwise:
    """``y[d...] = expression(inputs[d...])`` with every tensor's own strides.

    Operator inputs: ``*inputs``. Output: ``y``. Domain: ``shape``, one to five axes, ``shape[0]`` is
    the leading extent. A transpose, an expand, a slice or one part of a concatenation is
    ``Operand(0)`` with suitable strides. Integers are computed as fp32 (lowering refuses int
    arithmetic that fp32 cannot hold), except that a plain copy moves them exactly.
    """

    leading: Extent
    shape: tuple[int, ...]
    expression: Expression
    inputs: tuple[Tensor, ...]
    y: Tensor
