"""Attention as its templates see it: what their units are told of a problem."""

from dataclasses import replace

from wpk.dims import DimExpr, ceil_div, product
from wpk.expression import cpp_type
from wpk.problems import Attention, Tensor
from wpk.schedules.strided import (
    constants_mask,
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
        (problem.ending.operands, problem.queries, problem.width),
    ):
        reason = why_unaddressable(tensors, (1, heads, rows, columns))
        if reason is not None:
            return reason
    return why_operand_missing(problem) or why_unpaddable(problem.y, (_COLUMN,))


def attention_members(problem: Attention, block_rows: int) -> dict[str, Member]:
    """Return the members of ``Problem`` that all templates of attention have.

    Args:
        problem: The problem.
        block_rows: Queries of a block.
    """
    q, k, v, y, *behind = (_by_rows(problem, tensor) for tensor in _by_place(problem))
    operands = [_by_length(problem, tensor) for tensor in problem.scores.operands]
    lengths: dict[str, Member] = {
        "queries": problem.queries,
        "keys": problem.keys,
        "wide": is_wide(problem.leading, problem.batch[1] * _row_blocks(problem, block_rows)),
        "Lengths": Type("wpk::FixedLengths<Problem>"),
    }
    if (windows := problem.windows) is not None:
        lengths |= {
            "Lengths": Type("wpk::WindowedLengths<Problem>"),
            "height": windows.height,
            "imageWidth": windows.width,
            "windowRows": windows.rows,
            "windowColumns": windows.columns,
            "across": windows.across,
            "shiftRows": windows.shift[0],
            "shiftColumns": windows.shift[1],
        }
    return {
        "Q": Type(cpp_tensor(q, _ORDER)),
        "K": Type(cpp_tensor(k, _ORDER)),
        "V": Type(cpp_tensor(v, _ORDER)),
        "Y": Type(cpp_tensor(y, _ORDER)),
        "Operands": Type(cpp_tensors(operands, _ORDER)),
        "operand_constants": constants_mask(operands),
        "Scores": Type(cpp_type(problem.scores.expression)),
        "EpilogueOperands": Type(cpp_tensors(behind, _ORDER)),
        "Epilogue": Type(cpp_type(problem.ending.expression)),
        "emptyRowsAreZero": problem.empty_rows_are_zero,
        "heads": problem.batch[1],
        "sharing": problem.sharing or 1,
        "depth": problem.depth,
        "width": problem.width,
        "yPadding": problem.y.padding,
        **({} if problem.lengths is not None else lengths),
    }


def attention_blocks(problem: Attention, block_rows: int) -> DimExpr:
    """Return the number of blocks of ``block_rows`` queries over all matrices."""
    if problem.lengths is None:
        items = problem.batch[1] * _row_blocks(problem, block_rows)
        return product(problem.leading.expression, items)
    blocks = ceil_div(problem.lengths[0].expression, block_rows)
    return product(product(problem.leading.expression, problem.batch[1]), blocks)


def attention_sizes(problem: Attention) -> tuple[DimExpr, ...]:
    """Return what a launch passes beside the batch."""
    return tuple(each.expression for each in problem.lengths or ())


def _row_blocks(problem: Attention, block_rows: int) -> int:
    return -(-problem.queries // block_rows)


def _by_place(problem: Attention) -> tuple[Tensor, ...]:
    """What has the rows of queries or keys."""
    return problem.q, problem.k, problem.v, problem.y, *problem.ending.operands


def _by_rows(problem: Attention, tensor: Tensor) -> Tensor:
    """The tensor as kernels index it: where matrices are windows, by places of all images."""
    if problem.windows is None:
        return _by_length(problem, tensor)
    return replace(tensor, strides=(tensor.strides[2], *tensor.strides[1:]))


def _by_length(problem: Attention, tensor: Tensor) -> Tensor:
    """The tensor as kernels index it: where lengths are free, by rows of all matrices."""
    if problem.lengths is None or tensor.strides[0] == 0:
        return tensor
    row = tensor.strides[2] or tensor.strides[3]  # operands have no rows of queries
    return replace(tensor, strides=(row, *tensor.strides[1:]))
