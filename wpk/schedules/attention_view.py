"""Attention as its templates see it: what their units are told of a problem."""

from wpk.expression import cpp_type
from wpk.problems import Attention
from wpk.schedules.strided import (
    cpp_tensor,
    cpp_tensors,
    is_wide,
    why_operand_missing,
    why_unaddressable,
    why_unpaddable,
)
from wpk.schedules.unit import Member, Type

_ORDER = (0, 1, 2, 3)
_COLUMN = 3


def why_not_attention(problem: Attention) -> str | None:
    """Say why no template computes the problem: what it reads or writes cannot be addressed."""
    heads, operands = problem.batch[1], problem.scores.operands
    if problem.keys == 0 or problem.depth == 0:
        return f"{problem.keys} keys of {problem.depth} elements: there is nothing to sum"
    for tensors, rows, columns in (
        ((problem.q,), problem.queries, problem.depth),
        ((problem.k,), problem.keys, problem.depth),
        ((problem.v,), problem.keys, problem.width),
        ((problem.y,), problem.queries, problem.width),
        (operands, problem.queries, problem.keys),
    ):
        reason = why_unaddressable(tensors, (1, heads, rows, columns))
        if reason is not None:
            return reason
    return why_operand_missing(problem, "scores") or why_unpaddable(problem.y, (_COLUMN,))


def attention_members(problem: Attention, block_rows: int) -> dict[str, Member]:
    """Return the members of ``Problem`` that all templates of attention have.

    Args:
        problem: The problem.
        block_rows: Queries of a block.
    """
    return {
        "Q": Type(cpp_tensor(problem.q, _ORDER)),
        "K": Type(cpp_tensor(problem.k, _ORDER)),
        "V": Type(cpp_tensor(problem.v, _ORDER)),
        "Y": Type(cpp_tensor(problem.y, _ORDER)),
        "Operands": Type(cpp_tensors(problem.scores.operands, _ORDER)),
        "Scores": Type(cpp_type(problem.scores.expression)),
        "emptyRowsAreZero": problem.empty_rows_are_zero,
        "heads": problem.batch[1],
        "queries": problem.queries,
        "keys": problem.keys,
        "depth": problem.depth,
        "width": problem.width,
        "yPadding": problem.y.padding,
        "wide": is_wide(problem.leading, problem.batch[1] * row_blocks(problem, block_rows)),
    }


def row_blocks(problem: Attention, block_rows: int) -> int:
    """Count the blocks over the queries of one matrix."""
    return -(-problem.queries // block_rows)
