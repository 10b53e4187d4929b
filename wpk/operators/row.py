"""A row of the table of operators: what wpk knows of an ONNX operator, column by column."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Any

from wpk.expression import Expression

Attributes = Mapping[str, Any]
Formula = Callable[[Sequence[Expression], Attributes], Expression]


class OperatorKind(Enum):
    """What an operator does with its data, which decides where it may stand in a fused function."""

    ELEMENTWISE = auto()
    """It computes each element from the operands' elements at the same place."""
    PRODUCT = auto()
    POOL = auto()
    SOFTMAX = auto()
    NORMALISATION = auto()
    REDUCTION = auto()
    RECURRENT = auto()
    """It computes each step of a sequence from the state that the one before left."""
    VIEW = auto()
    """It keeps all elements and changes how they are seen."""
    MOVEMENT = auto()
    """It selects, repeats or joins elements."""
    SHAPE = auto()
    """It reads no element."""
    OTHER = auto()


@dataclass(frozen=True)
class OwnError:
    """How far the arithmetic of an element-wise function may be off, in units of its roundoff.

    Attributes:
        result: Times the magnitude of the result.
        argument: Times that of the first operand: a bounded function computed with cancellation is
            multiplied by it.
        terms: Times the sum of the magnitudes of all operands.
        one: As it is: a term of 1 may cancel.
    """

    result: float = 0.0
    argument: float = 0.0
    terms: float = 0.0
    one: float = 0.0


class ErrorRule(Enum):
    """Error bounds that are more than what inputs move and an `OwnError`: see `wpk.checks.error_bounds`."""

    EXACT = auto()
    DATA = auto()
    ALL_DATA = auto()
    PADDED = auto()
    DROPOUT = auto()
    GATHERED = auto()
    RANKED = auto()
    WRITTEN = auto()
    RUNNING_SUM = auto()
    RUNNING_PRODUCT = auto()
    LIMITED = auto()
    COMPARED = auto()
    LOGIC = auto()
    EITHER = auto()
    CHOICE = auto()
    CAST = auto()
    QUANTISED = auto()
    DYNAMICALLY_QUANTISED = auto()
    PRODUCTS = auto()
    MEAN = auto()
    AVERAGE_POOL = auto()
    LARGEST = auto()
    SQUARES = auto()
    FACTORS = auto()
    LOG_SUM = auto()
    RESAMPLED = auto()
    REGIONS = auto()
    DETERMINANT = auto()
    SELECTED = auto()
    SOFTMAX = auto()
    LOG_SOFTMAX = auto()
    NORMALISED = auto()
    RECURRENT = auto()


class Roundoff(Flag):
    """What the rounding of a result is relative to, in any implementation of the operator."""

    NONE = 0
    """Numbers are moved or selected, and not rounded in the type that they have."""
    RESULT = auto()
    TERMS = auto()
    """What is summed, which may cancel: disturbing what goes in shows it."""
    ONE = auto()
    """It is written with 1 + f(x) or tanh: right to an absolute roundoff."""


class Magnitude(Enum):
    """How the largest magnitude of a result follows from those of the inputs."""

    FIRST = auto()
    LARGEST = auto()
    BRANCHES = auto()
    CLIPPED = auto()
    SUM = auto()
    FACTORS = auto()
    QUOTIENT = auto()
    MEAN = auto()
    PRODUCTS = auto()
    LAYER_NORM = auto()


class Integers(Enum):
    """What an element-wise operator gives for integers."""

    REFUSED = auto()
    STAY = auto()
    """A number of the same type."""
    WRAP = auto()
    """A number that may have more bits, of which the type keeps the lowest."""
    COMPARE = auto()
    """A truth value."""
    TRUTH = auto()
    """A truth value of truth values."""


class Rewrite(Flag):
    """Rewritings of graph passes in which an element-wise operator may take part."""

    NONE = 0
    ACTIVATION = auto()
    """It may follow several products that become one (`sibling-products`)."""
    BEFORE_VIEWS = auto()
    """It may be computed before the views of its only tensor (`hoist-over-views`)."""
    BEFORE_TRANSPOSE = auto()
    """It may be computed before a Transpose (`redundant-movement`)."""
    WITHOUT_EXPAND = auto()
    """It broadcasts its operands: no Expand is needed before it (`redundant-movement`)."""


@dataclass(frozen=True)
class Row:
    """A row of the table; what is left out is not known, and nothing is concluded from it.

    Attributes:
        name: In ONNX's own domain.
        kind: What it does with its data.
        formula: The expression of its result over those of its inputs; None if it has none.
        error: The rule for the error of a kernel's result; None takes it to be as far off as
            slightly other inputs would put it.
        roundoff: What its rounding is relative to.
        magnitude: The rule for the largest magnitude of its result.
        integers: What it gives for integers.
        between: Numbers between which all results lie, whatever the inputs and attributes are,
            in any type.
        is_sensitive: Whether it is a long sum, a statistic or a steep function: it is computed in
            fp32 whatever the precision.
        rewrites: The rewritings that it may take part in.
        parameters: The first of the inputs that say how it computes and are no data; None if all
            are data.
    """

    name: str
    kind: OperatorKind
    formula: Formula | None = None
    error: OwnError | ErrorRule | None = None
    roundoff: Roundoff = Roundoff.RESULT
    magnitude: Magnitude | None = None
    integers: Integers = Integers.REFUSED
    between: tuple[float, float] | None = None
    is_sensitive: bool = False
    rewrites: Rewrite = Rewrite.NONE
    parameters: int | None = None
