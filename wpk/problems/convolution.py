"""Two-dimensional convolution, plain, grouped, depthwise or transposed, with its epilogue."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from typing import Self

import numpy as np

from wpk.dtypes import Precision
from wpk.expression import flops
from wpk.extent import Extent
from wpk.problems.access import Access
from wpk.problems.expression_words import epilogue_words
from wpk.problems.family import Family
from wpk.problems.odd_sizes import (
    BATCH,
    LEAST,
    ROWS,
    above,
    odd_extent,
    ragged,
    resized_epilogue,
    unit_of,
)
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.peculiar import few_words, ragged_words
from wpk.problems.phrases import area, batch_words, by, sentence, step_words
from wpk.problems.problem import Accesses, FieldExpression, Problem, Traffic, no_bytes
from wpk.problems.resized_layout import resized

_WIDE = 264  # filters of two of the widest tiles that are multicast, and some more
_FEW_CHANNELS = 4
"""Images with so many are read in other ways than those with more: odd siblings keep their channels."""

_ODD_HEIGHTS = (9, 5)
_ODD_WIDTHS = (7, 10, 12, 24)
"""Odd; then twice, four and eight times an odd number, for rows whose strides are aligned."""

Shape = tuple[int, int, int, int]


@dataclass(frozen=True)
class Convolution(Problem):
    """``y[n,k,p,q] = epilogue(sum over c,r,s of x[n,c,h,w] * weight[k,c,r,s])``.

    Plain: ``h = p*stride - pad_top + r*dilation``. Transposed: ``p = h*stride - pad_top +
    r*dilation``, the weight has ONNX's ConvTranspose layout (C, K/groups, R, S). One-dimensional
    convolutions have h = r = p = 1.

    Operator inputs: ``x, weight, *epilogue.operands``. Output: ``y``. Domain of ``x``: (n, c, h, w);
    of ``y`` and the epilogue's operands: (n, k, p, q). The weight is a constant that the schedule's
    packing lays out.
    """

    precision: Precision
    n: Extent
    c: int
    h: int
    w: int
    k: int
    p: int
    q: int
    filter: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pad: tuple[int, int]
    groups: int
    transposed: bool
    x: Tensor
    y: Tensor
    epilogue: Epilogue

    @property
    def leading(self) -> Extent:
        """The extent that kernels take at run time."""
        return self.n

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the whole problem."""
        pixels = self.h * self.w if self.transposed else self.p * self.q
        r, s = self.filter
        return self.n.value * pixels * self.k * self.c * r * s // self.groups

    @property
    def reduction(self) -> int:
        """Products summed for one output element (the K of the error bound)."""
        return self.c // self.groups * self.filter[0] * self.filter[1]

    @property
    def is_depthwise(self) -> bool:
        """Whether every group has one input channel."""
        return self.groups == self.c and self.groups > 1

    @property
    def family(self) -> Family:
        """See `Problem.family`."""
        return Family.DEPTHWISE if self.is_depthwise else Family.CONVOLUTION

    @property
    def matrix_precision(self) -> Precision:
        """See `Problem.matrix_precision`."""
        return self.precision

    @property
    def constant_shape(self) -> Shape:
        """See `Problem.constant_shape`."""
        first, second = (self.c, self.k) if self.transposed else (self.k, self.c)
        return (first, second // self.groups, *self.filter)

    @property
    def pads_its_columns(self) -> bool:
        """See `Problem.pads_its_columns`."""
        return self.y.pads(1)

    def words(self) -> str:
        """See `Problem.words`."""
        return sentence(self._shape_words(), epilogue_words(self.epilogue), batch_words(self.n))

    def features(self) -> dict[str, float]:
        """The nine numbers of Woodpecker-DL 2.4, whose "padding" is whether there is any."""
        return {
            "n": self.n.value,
            "c_in": self.c,
            "c_out": self.k,
            "k_h": self.filter[0],
            "k_w": self.filter[1],
            "h": self.h,
            "w": self.w,
            "stride": self.stride[0],
            "padding": float(any(self.pad)),
        }

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        output = Access(self.y, (self.n, self.k, self.p, self.q))
        x = Access(self.x, (self.n, self.c, self.h, self.w))
        return (x, None, *(Access(each, output.axes) for each in self.epilogue.operands)), output

    def traffic(self) -> Traffic:
        """See `Problem.traffic`."""
        taps = [self._taps(axis) for axis in (0, 1)]  # [output, input, tap] -> used
        pairs = prod(int(used.sum()) for used in taps)
        rows, columns = (int(used.any(axis=(0, 2)).sum()) for used in taps)
        kernel = prod(int(used.any(axis=(0, 1)).sum()) for used in taps)
        filters, domain = self.k * (self.c // self.groups), (self.n, self.k, self.p, self.q)
        x = Access(self.x, (self.n, self.c, rows, columns))
        others = (Access(each, domain) for each in (self.y, *self.epilogue.operands))
        moved = sum(each.distinct_bytes for each in (x, *others))
        return Traffic(
            moved + filters * kernel * self.precision.storage.bytes,
            2 * self.n.value * filters * pairs,
            self.n.value * prod(domain[1:]) * flops(self.epilogue.expression),
        )

    def peculiarities(self) -> Iterator[str]:
        """See `Problem.peculiarities`."""
        channels = self.c // self.groups
        if self.groups > 1 and not self.is_depthwise:
            yield f"{self.groups} groups of {channels} channels each"
        elif not self.is_depthwise:
            yield from ragged_words(channels, "channels")
        yield from few_words(self.n.value * self.p * self.q, "pixels")

    def terms(self, elements: int) -> int:
        """See `Problem.terms`."""
        return elements * self.reduction

    def expressions(self) -> Iterator[FieldExpression]:
        """See `Problem.expressions`."""
        yield FieldExpression.of_epilogue(self.epilogue)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        yield from no_bytes(self.precision, x=self.x)
        for field, channels in (("c", self.c), ("k", self.k)):
            if channels % self.groups:
                yield field, f"{channels} in {self.groups} groups"

    def _shape_words(self) -> str:
        depthwise = self.is_depthwise and self.k == self.c
        name = "depthwise conv" if depthwise else "transposed conv" if self.transposed else "conv"
        return sentence(
            f"{name} {by(self.filter)}/{step_words(self.stride)}",
            f"{self.c}ch" if depthwise else f"{self.c}→{self.k}",
            area(self.p, self.q),
            "" if self.dilation == (1, 1) else f"dilation {step_words(self.dilation)}",
            f"{self.groups} groups" if self.groups > 1 and not depthwise else "",
        )

    def _taps(self, axis: int) -> np.ndarray:
        """Which output, input and filter positions of one axis meet: booleans, in this order."""
        outputs, inputs = ((self.p, self.h), (self.q, self.w))[axis]
        if self.transposed:
            outputs, inputs = inputs, outputs  # the input's positions walk over the output
        walk = np.arange(outputs) * self.stride[axis] - self.pad[axis]
        reached = walk[:, None] + np.arange(self.filter[axis]) * self.dilation[axis]
        used: np.ndarray = reached[:, None, :] == np.arange(inputs)[None, :, None]
        return used.transpose(1, 0, 2) if self.transposed else used

    def _siblings(self) -> Iterator[Self | None]:
        for groups, c, k in self._odd_channels():
            for p in (1,) if self.h == self.p == 1 else (*_ODD_HEIGHTS, self.p):
                for q in (*_ODD_WIDTHS, self.q):
                    yield self._resized(groups, c, k, (p, q))

    def _odd_channels(self) -> Iterator[tuple[int, int, int]]:
        """Groups, channels and filters."""
        of_x = unit_of(1, self.x)
        of_y = unit_of(1, self.y, *self.epilogue.operands)
        if self.is_depthwise:
            many = self.k // self.c
            for c in ragged(self.c, max(of_x, of_y), 40):
                yield c, c, c * many
        elif self.groups > 1:
            each_c, each_k = self.c // self.groups, self.k // self.groups
            for groups in dict.fromkeys((min(3, self.groups), self.groups)):
                for each in (*ragged(each_c, of_x), each_c):
                    for filters in (ragged(each_k, of_y)[0], each_k):
                        yield groups, groups * each, groups * filters
        else:
            few = self.c <= _FEW_CHANNELS
            for least in (*ROWS, _WIDE):
                for c in (self.c,) if few else ragged(self.c, of_x, LEAST):
                    yield 1, c, above(least, self.k, of_y)

    def _resized(self, groups: int, c: int, k: int, size: tuple[int, int]) -> Self | None:
        """The sibling whose smaller image, y or for a transposed one x, has this size."""
        few = (self.h, self.w) if self.transposed else (self.p, self.q)
        many = (self.p, self.q) if self.transposed else (self.h, self.w)
        down, right = self.stride
        reached = many[0] + down * (size[0] - few[0]), many[1] + right * (size[1] - few[1])
        (h, w), (p, q) = (size, reached) if self.transposed else (reached, size)
        if min(h, w, p, q) < 1:
            return None
        n = self.n.value
        of_x = (n, self.c, self.h, self.w), (BATCH, c, h, w)
        of_y = (n, self.k, self.p, self.q), (BATCH, k, p, q)
        x, y = resized(self.x, *of_x, spread=True), resized(self.y, *of_y, spread=True)
        epilogue = resized_epilogue(self.epilogue, *of_y)
        if x is None or y is None or epilogue is None:
            return None
        images = replace(self, n=odd_extent(self.n, BATCH), h=h, w=w, p=p, q=q)
        sibling = replace(images, c=c, k=k, groups=groups, x=x, y=y, epilogue=epilogue)
        return sibling._with_limits(*of_x)

    def _with_limits(self, before: Shape, after: Shape) -> Self | None:
        """The same, where whatever else lies over the input has its new extents; a plain one has nothing."""
        del before, after
        return self
