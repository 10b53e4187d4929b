"""Normalisation of rows: softmax, layer norm and their like, with element-wise work around it."""

from dataclasses import dataclass
from enum import StrEnum

from wpk.expression import Expression
from wpk.extent import Extent
from wpk.problems.operand import Epilogue, Tensor


class NormKind(StrEnum):
    """What happens to a row ``v``."""

    SOFTMAX = "softmax"  # exp(v - max v) / sum exp(v - max v)
    LOG_SOFTMAX = "log_softmax"  # v - max v - log(sum exp(v - max v))
    LAYER = "layer"  # (v - mean v) / sqrt(var v + epsilon)
    RMS = "rms"  # v / sqrt(mean v^2 + epsilon)


@dataclass(frozen=True)
class Normalisation:
    """``y[o..., i] = epilogue(normalise over i of prologue(inputs[o..., i]))``.

    Operator inputs: ``*inputs, *epilogue.operands``. Output: ``y``. All domains: (outer..., cols)
    where ``outer[0]`` is the leading extent; at most three outer axes. ``Operand(j)`` in the
    prologue is ``inputs[j]``; in the epilogue ``epilogue.operands[j]`` (scale and shift of a layer
    norm are epilogue operands with stride 0 along the outer axes). Statistics are fp32; sums of a
    layer norm are taken in two passes (mean first), never as E[v^2] - E[v]^2.
    """

    kind: NormKind
    leading: Extent
    outer: tuple[int, ...]
    cols: int
    epsilon: float
    prologue: Expression
    inputs: tuple[Tensor, ...]
    y: Tensor
    epilogue: Epilogue

    @property
    def reduction(self) -> int:
        """Elements of a row."""
        return self.cols
