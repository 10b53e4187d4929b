"""What every kind of problem says of itself."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from wpk.dtypes import DType, Precision
from wpk.expression import Expression, numbers_of
from wpk.extent import Extent
from wpk.problems.access import Access
from wpk.problems.family import Family
from wpk.problems.operand import Epilogue, Tensor

Accesses = tuple[tuple[Access | None, ...], Access]
"""The inputs in the operator's order, and the output. An input is None where a packing, not strides,
says how kernels read it."""


@dataclass(frozen=True)
class Traffic:
    """What a problem must touch and compute at least, so that the bound it gives is one that nothing beats.

    Input elements that no window reaches do not count, nor do products with padding, nor data that an
    index might leave out.

    Attributes:
        bytes: Of distinct elements read or written.
        products: Operations of the matrix-like part (two a multiply-accumulate), which a tensor
            core may do.
        others: All other operations; the ordinary cores do them.
        streamed: Of the bytes, those of a constant matrix that rows are multiplied by: where it matters, a network of
            such products reads more than a cache holds until it is run again.
    """

    bytes: int
    products: int
    others: int
    streamed: int = 0


@dataclass(frozen=True)
class FieldExpression:
    """An expression of a problem.

    Attributes:
        field: What it is called in messages.
        expression: Over the operands, and what the kernel computed.
        operands: How many operands it may read.
        follows: Whether it follows a kernel's result, so that it may ask for that.
    """

    field: str
    expression: Expression
    operands: int
    follows: bool

    @classmethod
    def of_epilogue(cls, epilogue: Epilogue) -> Self:
        """The expression of what happens to a result."""
        return cls("epilogue", epilogue.expression, len(epilogue.operands), follows=True)


@dataclass(frozen=True)
class Problem(ABC):
    """An operator's work. Equal problems share one result.

    A kind of problem is a frozen dataclass in a file of its own. Its fields are what plans, locks, the
    tuning store and digests hold of it; all else follows from them.
    """

    carries_double = False
    """Whether its kernels take tensors of fp64."""

    constant_inputs = tuple[int, ...]()
    """Inputs that are constants and lie in memory as strides say: kernels read them before those in front have ended."""

    if TYPE_CHECKING:  # a kind may have a field of this name, whose default a property would become

        @property
        @abstractmethod
        def leading(self) -> Extent:
            """The extent that kernels take at run time; see `extents` for others."""

        @property
        @abstractmethod
        def y(self) -> Tensor:
            """The output."""

    @property
    def extents(self) -> tuple[Extent, ...]:
        """All extents that may be free; most kinds have but the leading one."""
        return (self.leading,)

    @property
    @abstractmethod
    def family(self) -> Family:
        """What it is counted as."""

    @abstractmethod
    def words(self) -> str:
        """What it computes, as a person would write it on a whiteboard: ``conv 3×3/1 64→64 56² relu``."""

    @abstractmethod
    def features(self) -> dict[str, float]:
        """Its extents and settings by name, for learners; the same names for all problems of a kind.

        Axes of which a kind has no fixed number are counted from the last.
        """

    @abstractmethod
    def accesses(self) -> Accesses:
        """The tensors that it reads and writes, and over which domains."""

    def reads(self) -> tuple[Access | None, ...]:
        """The inputs; see `accesses`."""
        return self.accesses()[0]

    def writes(self) -> tuple[Access, ...]:
        """All outputs: that of `accesses`, and what a kernel stores beside it."""
        return (self.accesses()[1],)

    @abstractmethod
    def traffic(self) -> Traffic:
        """The least that it touches and computes."""

    def peculiarities(self) -> Iterator[str]:
        """What of its sizes keeps kernels from its bound: ``56 products of 56 rows each``; mostly nothing."""
        yield from ()

    @property
    def matrix_precision(self) -> Precision | None:
        """The precision of its products; None where it has none that a tensor core could do."""
        return None

    @property
    def numbers(self) -> DType:
        """What it computes in beside its products: fp32, or what its expressions say."""
        found = (numbers_of(each.expression) for each in self.expressions())
        return next((numbers for numbers in found if numbers is not DType.FP32), DType.FP32)

    @property
    def constant_shape(self) -> tuple[int, ...] | None:
        """The logical shape of the factor that a packing lays out; None where there is none."""
        return None

    @property
    def pads_its_columns(self) -> bool:
        """Whether padding of the output lies where the kernels write it."""
        return True

    def terms(self, elements: int) -> int:
        """Terms that so many elements of the output are made of."""
        return elements

    def expressions(self) -> Iterator[FieldExpression]:
        """Its expressions, with what they may read."""
        yield from ()

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Fields that contradict each other or say what the kind has not, and what they say."""
        yield from ()

    def table_size(self, operand: int) -> int:
        """Entries of the table that an operand's elements index; 0 where they index none."""
        del operand
        return 0

    def divisors(self) -> Iterator[int]:
        """Operands that something is divided by."""
        yield from ()

    def odd_siblings(self) -> Iterator["Problem"]:
        """The like with odd, small sizes, the most ragged first; none of a kind without any.

        Kernels are specialised on their sizes, so those of a problem that tiles divide never execute
        what a generator makes of ragged edges. A sibling has the same types, precision, expressions,
        window and kind of layout; only sizes differ. Which one a schedule is legal for, its template says.
        """
        yield from (each for each in self._siblings() if each is not None and each != self)

    def _siblings(self) -> Iterator["Problem | None"]:
        """What `odd_siblings` chooses from: None where the layout cannot be kept."""
        yield from ()

    def moved_bytes(self) -> int:
        """Bytes of all distinct elements of what strides say how to read or write."""
        touched = (*self.reads(), *self.writes())
        return sum(each.distinct_bytes for each in touched if each is not None)


def does_not_lead(field: str, shape: tuple[int, ...], leading: Extent) -> Iterator[tuple[str, str]]:
    """The contradiction of a shape whose first axis is not the leading extent."""
    if not shape or shape[0] != leading.value:
        yield field, f"{shape} does not begin with the leading extent {leading.value}"


def no_bytes(precision: Precision, **factors: Tensor) -> Iterator[tuple[str, str]]:
    """The contradictions of factors that lie in memory as something else than a quantised product multiplies."""
    for field, tensor in factors.items():
        if precision is Precision.INT8 and not tensor.dtype.is_byte:
            yield field, f"{tensor.dtype.value} in a product of bytes"
        if precision.is_fp8 and tensor.dtype is not precision.storage:
            yield field, f"{tensor.dtype.value} in a product of {precision.value}"


def counted_axes(name: str, sizes: tuple[int, ...], most: int) -> dict[str, float]:
    """Features of axes, the last one's number first; those that a problem has not are 1."""
    padded = (1,) * (most - len(sizes)) + sizes
    return {f"{name}_{most - place}": size for place, size in enumerate(padded)}
