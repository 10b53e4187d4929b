"""The problems whose whole schedule spaces are measured, by the name of their row.

The five convolutions of Woodpecker-DL's table 1 (without padding: so each one's output is the next
one's input), and layers of ResNet, MobileNetV2, a small network for 32 x 32 images, and DistilBERT.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from subjects.problems import channels_first, convolution, matmul

from wpk.dtypes import Precision
from wpk.problems import Convolution, Matmul
from wpk.schedules.registry import TEMPLATES
from wpk.schedules.template import ScheduleTemplate
from wpk.targets.target import Target

Row = Convolution | Matmul
Template = ScheduleTemplate[Any, Any]


def _convolution(
    precision: Precision,
    channels: tuple[int, int],
    image: tuple[int, int],
    window: int = 3,
    stride: int = 1,
    pad: int | None = None,
    groups: int = 1,
    image_first: bool = False,
) -> Convolution:
    """A convolution with bias and ReLU; the input may have its channels first, as models give it."""
    problem = convolution(
        *(*channels, image, window),
        stride=stride,
        pads=pad,
        groups=groups,
        precision=precision,
        bias=precision.storage,
        relu=True,
    )
    if image_first:
        return replace(problem, x=channels_first(precision.storage, channels[0], *image))
    return problem


def _product(precision: Precision, m: int, n: int, k: int) -> Matmul:
    """Rows times a constant matrix, with bias."""
    return matmul(m, n, k, precision=precision, bias=precision.storage)


_MAKERS: dict[str, Callable[[Precision], Row]] = {
    "conv1a": lambda p: _convolution(p, (3, 64), (112, 96), 3, 1, 0, image_first=True),
    "conv1b": lambda p: _convolution(p, (64, 96), (110, 94), 3, 2, 0),
    "conv2": lambda p: _convolution(p, (96, 128), (54, 46), 3, 2, 0),
    "conv3": lambda p: _convolution(p, (128, 256), (26, 22), 3, 2, 0),
    "conv4": lambda p: _convolution(p, (256, 512), (12, 10), 3, 1, 0),
    "resnet_3x3_56": lambda p: _convolution(p, (64, 64), (56, 56)),
    "resnet_3x3_7": lambda p: _convolution(p, (512, 512), (7, 7)),
    "resnet_1x1_28": lambda p: _convolution(p, (512, 128), (28, 28), 1),
    "resnet_1x1_14": lambda p: _convolution(p, (1024, 256), (14, 14), 1),
    "resnet_1x1_7": lambda p: _convolution(p, (2048, 512), (7, 7), 1),
    "mobilenet_1x1_112": lambda p: _convolution(p, (32, 16), (112, 112), 1),
    "mobilenet_1x1_56": lambda p: _convolution(p, (144, 24), (56, 56), 1),
    "mobilenet_dw_56": lambda p: _convolution(p, (144, 144), (56, 56), groups=144),
    "mobilenet_dw_14": lambda p: _convolution(p, (576, 576), (14, 14), 3, 2, groups=576),
    "small_3x3_32": lambda p: _convolution(p, (16, 16), (32, 32)),
    "small_3x3_16": lambda p: _convolution(p, (32, 32), (16, 16)),
    "classify": lambda p: _product(p, 1, 1000, 2048),
    "attention_16": lambda p: _product(p, 16, 768, 768),
    "attention_128": lambda p: _product(p, 128, 768, 768),
}

_MEASURED = {
    Precision.FP32: tuple(name for name in _MAKERS if name != "resnet_3x3_7"),
    Precision.TF32: ("small_3x3_32", "small_3x3_16", "attention_16"),
    Precision.FP16: ("small_3x3_32", "mobilenet_1x1_112", "resnet_3x3_7", "classify"),
    Precision.BF16: ("mobilenet_dw_14", "attention_16"),
}
"""Left out is what takes longer than all others: the slowest schedules of resnet_3x3_7 in fp32."""

ROWS: dict[str, Row] = {
    f"{name}.{precision}": _MAKERS[name](precision)
    for precision, names in _MEASURED.items()
    for name in names
}
"""By name of the row: layer and precision."""

PAPER_ROWS = tuple(f"{name}.fp32" for name in ("conv1a", "conv1b", "conv2", "conv3", "conv4"))
"""Table 1 of Woodpecker-DL, in its order."""

HELD_OUT = tuple(
    f"{name}.{precision}"
    for precision, names in {
        Precision.FP32: (
            *("conv1b", "conv3", "resnet_1x1_14", "mobilenet_1x1_56", "mobilenet_dw_56"),
            "small_3x3_16",
        ),
        Precision.TF32: ("small_3x3_16", "small_3x3_32"),
        Precision.FP16: ("resnet_3x3_7", "classify"),
        Precision.BF16: ("attention_16",),
    }.items()
    for name in names
)
"""Rows that nothing in the performance models was fitted to."""


def templates_of(problem: Row, target: Target) -> list[Template]:
    """The templates that carry a problem and have legal schedules for it."""
    able = [t for t in TEMPLATES if isinstance(problem, t.problem_type)]
    carrying = [t for t in able if t.why_not(problem, target) is None]
    return [t for t in carrying if legal_count(problem, t, target)]


def legal_count(problem: Row, template: Template, target: Target) -> int:
    """Legal schedules of a template."""
    _, columns = template.space(problem, target)
    return len(next(iter(columns.values())))
