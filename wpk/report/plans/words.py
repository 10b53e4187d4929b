"""Families of ONNX operators, and schedules in a few words."""

import re
from collections.abc import Sequence
from itertools import groupby

from wpk.problems import Family
from wpk.problems.signs import TIMES

_AXIS = re.compile(r"(.+)_[a-z]")
_MOST_NAMES = 6

_ONNX_KINDS = (
    (Family.CONVOLUTION, r".*Conv.*"),
    (Family.MATRIX_PRODUCT, r"MatMul.*|Gemm|Einsum"),
    (Family.ATTENTION, r"Attention"),
    (Family.RECURRENCE, r"LSTM|GRU|RNN"),
    (Family.REDUCTION, r"Reduce.*|Global.*Pool|ArgM.*|Cum.*|TopK|Det"),
    (Family.POOLING, r".*Pool|RoiAlign"),
    (Family.NORMALISATION, r".*Softmax|.*Normalization|LRN"),
    (
        Family.MOVEMENT,
        (
            r"Reshape|Transpose|Flatten|Squeeze|Unsqueeze|Concat|Split|Slice|Gather.*|Scatter.*|"
            r"Pad|Resize|Upsample|Expand|Tile|Identity|Shape|Size|Constant.*|Range|DepthToSpace|"
            r"SpaceToDepth|OneHot|MaxUnpool|ReverseSequence|Trilu|EyeLike|Cast.*"
        ),
    ),
)


def kind_of_onnx(operator: str) -> str:
    """Return the family of an ONNX operator, in the words of `Family`."""
    for kind, pattern in _ONNX_KINDS:
        if re.fullmatch(pattern, operator):
            return kind.value
    return Family.ELEMENT_WISE.value


def schedule_words(schedule: Sequence[tuple[str, int]]) -> str:
    """Return a schedule's numbers, axes of one thing together: ``block 64×64×32, stages 4``.

    A 0 stands for something that the kernel could do and does not: it is left out.
    """
    words = []
    for name, group in groupby((each for each in schedule if each[1]), key=_stem):
        words.append(f"{name.replace('_', ' ')} {TIMES.join(str(value) for _, value in group)}")
    return ", ".join(words)


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _stem(parameter: tuple[str, int]) -> str:
    axis = _AXIS.fullmatch(parameter[0])
    return parameter[0] if axis is None else axis[1]
