"""Window pooling over two spatial axes."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import prod

import numpy as np

from wpk.expression import flops
from wpk.extent import MAX_SIZE, Extent
from wpk.problems.access import Access
from wpk.problems.expression_words import epilogue_words
from wpk.problems.family import Family
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.phrases import area, batch_words, by, sentence, step_words
from wpk.problems.problem import Accesses, FieldExpression, Problem, Traffic


class PoolKind(StrEnum):
    """What a window becomes."""

    MAX = "max"
    AVERAGE = "average"
    PLACES = "places of the max"
    COLUMN_PLACES = "places by columns of the max"

    @property
    def finds_places(self) -> bool:
        """Whether it tells where the largest element is instead of what it is."""
        return self in (PoolKind.PLACES, PoolKind.COLUMN_PLACES)


@dataclass(frozen=True)
class Pooling(Problem):
    """``y[n,c,p,q] = epilogue(pool over the window at h = p*stride - pad, w = q*stride - pad)``.

    Windows are clipped to the input. An average divides by the number of clipped elements, or with
    ``count_include_pad`` by the number of window elements inside the *padded* input (ONNX: elements
    that ceil mode adds beyond the end padding never count). The place of the first of the largest elements,
    NaN being larger than every number, is its index in all of x as ONNX counts it, planes in columns or in
    rows; -1 where a window lies all in the padding. Places have no epilogue.

    Operator inputs: ``x, *epilogue.operands``. Output: ``y``. Domain of x: (n, c, h, w); of y and
    the operands: (n, c, p, q). ``pad`` is (top, left), ``pad_end`` (bottom, right).
    """

    kind: PoolKind
    n: Extent
    c: int
    h: int
    w: int
    p: int
    q: int
    window: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pad: tuple[int, int]
    pad_end: tuple[int, int]
    count_include_pad: bool
    x: Tensor
    y: Tensor
    epilogue: Epilogue

    @property
    def leading(self) -> Extent:
        """The extent that kernels take at run time."""
        return self.n

    carries_double = True
    family = Family.POOLING

    def words(self) -> str:
        """See `Problem.words`."""
        size = f"{by(self.window)}/{step_words(self.stride)}"
        pool = f"{self.kind} pool {size} {self.c}ch {area(self.p, self.q)}"
        return sentence(pool, epilogue_words(self.epilogue), batch_words(self.n))

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        return {
            "n": self.n.value,
            "c": self.c,
            "h": self.h,
            "w": self.w,
            "window_h": self.window[0],
            "window_w": self.window[1],
            "stride": self.stride[0],
            "padding": float(any(self.pad)),
        }

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        output = Access(self.y, (self.n, self.c, self.p, self.q))
        x = Access(self.x, (self.n, self.c, self.h, self.w))
        return (x, *(Access(each, output.axes) for each in self.epilogue.operands)), output

    def traffic(self) -> Traffic:
        """See `Problem.traffic`."""
        inside = []
        for axis, (outputs, size) in enumerate(((self.p, self.h), (self.q, self.w))):
            walk = np.arange(outputs) * self.stride[axis] - self.pad[axis]
            taps = walk[:, None] + np.arange(self.window[axis]) * self.dilation[axis]
            inside.append(taps[(taps >= 0) & (taps < size)])
        (_, *operands), output = self.accesses()
        rows, columns = (len(np.unique(taps)) for taps in inside)
        x = Access(self.x, (self.n, self.c, rows, columns))
        moved = sum(each.distinct_bytes for each in (x, *operands, output) if each is not None)
        others = self.n.value * self.c * prod(len(taps) for taps in inside)
        epilogue = prod(output.sizes) * flops(self.epilogue.expression)
        return Traffic(moved, 0, others + epilogue)

    def terms(self, elements: int) -> int:
        """See `Problem.terms`."""
        return elements * prod(self.window)

    def expressions(self) -> Iterator[FieldExpression]:
        """See `Problem.expressions`."""
        yield FieldExpression.of_epilogue(self.epilogue)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`; windows and padding are added in 32 bits."""
        if self.kind.finds_places and self.epilogue != Epilogue():
            yield "epilogue", "computes with places"
        for pad, window in zip((*self.pad, *self.pad_end), self.window * 2, strict=True):
            if pad > MAX_SIZE - window:
                yield "pad", f"{pad} is not within {-MAX_SIZE} to {MAX_SIZE - window}"
