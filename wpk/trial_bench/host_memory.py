"""The references of a model must fit into this machine's memory: beyond it a process is ended without a word."""

from collections.abc import Iterable, Mapping
from math import prod

from wpk.errors import EngineError
from wpk.free_memory import free_bytes
from wpk.lowering.program import Program
from wpk.problems import Problem
from wpk.trial_bench.first_operators import first_operators

SEEDS = 2
"""References are held at so many seeds while a model is tuned."""

_ELEMENT_BYTES = 16
"""Of a reference: the value and what it may differ by, each in float64."""


def require_memory(program: Program) -> None:
    """Refuse to tune a model whose references do not fit.

    Raises:
        EngineError: They do not; says how much they take and how much is free.
    """
    needed, free = SEEDS * reference_bytes(program), free_bytes()
    if free is not None and needed > free:
        raise EngineError(
            f"the float64 references that candidates are checked against take {_gib(needed)} GiB of "
            f"this machine's memory at this size, and {_gib(free)} GiB are free",
            fix="tune a smaller batch (--shapes), or let the models choose (--search static)",
        )


def reference_bytes(program: Program) -> int:
    """Return the bytes that the references of a program's distinct problems take at one seed.

    Every tensor as it lies in memory, and of the first operator of each problem what it should give.
    """
    tensors = sum(prod(v.shape) * v.dtype.bytes for v in program.values.values())
    return tensors + result_bytes(program, first_operators(program))


def result_bytes(program: Program, problems: Iterable[Problem]) -> int:
    """Return the bytes of what some of a program's problems should give, at one seed."""
    first = first_operators(program)
    given = (n for each in problems for n in first[each].outputs if n in program.values)
    return sum(prod(program.values[n].shape) for n in given) * _ELEMENT_BYTES


def fitting(has: Mapping[Problem, Program], coming: int = 0) -> list[Problem]:
    """Return the problems, in their order, whose references fit into this machine's memory together.

    Args:
        has: Problems, each with a program that has an operator of it.
        coming: Bytes of references of others that are not computed yet.
    """
    fits, free = list[Problem](), free_bytes()
    left = None if free is None else free - coming
    for problem, program in has.items():
        needed = SEEDS * result_bytes(program, [problem])
        if left is None or needed <= left:
            fits.append(problem)
            left = None if left is None else left - needed
    return fits


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f}"
