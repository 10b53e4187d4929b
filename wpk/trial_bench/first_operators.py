"""The operators that stand for the distinct problems of a program."""

from wpk.lowering.program import Operator, Program
from wpk.problems import Problem


def first_operators(program: Program) -> dict[Problem, Operator]:
    """Return the operator that stands for each distinct problem: its first."""
    first: dict[Problem, Operator] = {}
    for operator in program.operators:
        first.setdefault(operator.problem, operator)
    return first
