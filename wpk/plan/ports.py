"""What the caller gives to an engine, and gets from it."""

from dataclasses import dataclass

from wpk.dims import DimExpr
from wpk.dtypes import DType


@dataclass(frozen=True)
class Port:
    """An input or output of the model, as the caller sees it.

    Attributes:
        name: The ONNX tensor, and the value that holds it.
        dtype: Element type of the caller's array.
        shape: Extents; a free dimension is its name.
        draw_below: Integers for random inputs are drawn from [0, draw_below): what the model's
            tables of this input can hold; 0 where nothing limits them or the type is no integer.
        divides: Whether something is divided by such integers: none drawn is 0.
    """

    name: str
    dtype: DType
    shape: tuple[DimExpr, ...]
    draw_below: int = 0
    divides: bool = False

    def __str__(self) -> str:
        """``'x' float32[1, 3, 224, 224]``."""
        return f"'{self.name}' {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class KeptOutput:
    """An output, and its type, whose shape only a run decides: the caller gets it from the machine's memory."""

    name: str
    dtype: DType

    def __str__(self) -> str:
        """``'y' float32 known after a run``."""
        return f"'{self.name}' {self.dtype}, of a shape that a run decides"
