"""The problems whose whole schedule spaces are measured, by the name of their row.

The five convolutions of Woodpecker-DL's table 1 (without padding: so each one's output is the next
one's input), and layers of ResNet, MobileNetV2, a small network for 32 x 32 images, and DistilBERT.
"""

from collections.abc import Callable
from typing import Any

from wpk.dtypes import Precision
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.problems import Convolution, Epilogue, Matmul, Tensor
from wpk.schedules.registry import TEMPLATES
from wpk.schedules.template import ScheduleTemplate
from wpk.targets.target import Target

Row = Convolution | Matmul
Template = ScheduleTemplate[Any, Any]

_BIAS = apply("Add", Acc(), Operand(0))


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
    """A convolution with bias and ReLU, channels last as engines have it.

    Args:
        precision: Of the products, and of what lies in memory.
        channels: In and out.
        image: Height and width of the input.
        window: Height and width of the filter.
        stride: Along both axes.
        pad: On all sides; None keeps the size where the stride is 1.
        groups: As in ONNX.
        image_first: The input has its channels first, as models give it.
    """
    (c, k), (h, w) = channels, image
    around = window // 2 if pad is None else pad
    p, q = ((size + 2 * around - window) // stride + 1 for size in image)
    dtype = precision.storage
    alignment = next(a for a in (16, 8, 4, 2) if c * dtype.bytes % a == 0)
    x = Tensor(dtype, (c * h * w, 1, w * c, c), alignment=alignment)
    if image_first:
        x = Tensor(dtype, (c * h * w, h * w, w, 1))
    y = Tensor(dtype, (k * p * q, 1, q * k, k))
    epilogue = Epilogue(apply("Relu", _BIAS), (Tensor(dtype, (0, 1, 0, 0)),))
    sizes = (Extent(1), c, h, w, k, p, q)
    square = ((window, window), (stride, stride), (1, 1), (around, around))
    return Convolution(precision, *sizes, *square, groups, False, x, y, epilogue)


def _product(precision: Precision, m: int, n: int, k: int) -> Matmul:
    """Rows times a constant matrix, with bias."""
    dtype = precision.storage
    return Matmul(
        precision=precision,
        batch=(Extent(1), 1),
        m=Extent(m),
        n=n,
        k=k,
        a=Tensor(dtype, (0, 0, k, 1)),
        b=Tensor(dtype, (0, 0, n, 1)),
        b_constant=True,
        y=Tensor(dtype, (0, 0, n, 1)),
        epilogue=Epilogue(_BIAS, (Tensor(dtype, (0, 0, 0, 1)),)),
    )


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
