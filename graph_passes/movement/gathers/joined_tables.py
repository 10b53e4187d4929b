"""Read the rows of several tables at once, where they become rows side by side.

    Concat(Unsqueeze(Gather(T_0, i[..., 0])), Unsqueeze(Gather(T_1, i[..., 1])), ...)  ->  Gather([T_0; T_1; ...], j)
    Concat(Gather(T_0, i[..., 0]), Gather(T_1, i[..., 1]), ...)                        ->  the same, its rows joined

    j = i + [0, rows of T_0, rows of T_0 and T_1, ...]       a negative i counts from the end of its own table

Exact: rows are copied as they are. Recommenders embed each category by a table of its own, a row each. An index
outside its table is one outside all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.exact import joined_constant
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import Dims, dims, integers, made_by, why_any_shared

MOST_BYTES = 2**32
"""Of tables that are joined, since they are in memory twice while they are."""


@dataclass(frozen=True)
class _Row:
    """One piece of a concatenation.

    Attributes:
        table: Whose row it is.
        ids: What holds the index, along its last axis.
        column: Where.
        own_axis: Whether the row has an axis of its own, along which it is concatenated.
        made: What vanishes.
    """

    table: gs.Constant
    ids: gs.Tensor
    column: int
    own_axis: bool
    made: tuple[gs.Tensor, ...]

    def joins(self, other: "_Row") -> bool:
        """Whether two rows can be read at once."""
        return (
            self.ids is other.ids
            and self.own_axis == other.own_axis
            and self.table.shape[1] == other.table.shape[1]
            and self.table.dtype == other.table.dtype
        )


@dataclass(frozen=True)
class _Rows:
    """Rows that lie side by side in a concatenation, and the first of them."""

    node: gs.Node
    start: int
    rows: tuple[_Row, ...]


class JoinedTables(Rule[_Rows]):
    """Join the tables of rows that are concatenated."""

    name = "joined-tables"
    ops = ("Concat",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Rows | Refusal | None:
        """Match the longest run of rows whose indices lie in one tensor."""
        rows = [_row(node, tensor) for tensor in node.inputs]
        runs = [_Rows(node, start, _run(rows[start:])) for start in range(len(rows)) if rows[start]]
        best = max(runs, key=lambda run: len(run.rows), default=None)
        if best is None or len(best.rows) < 2:
            return None
        tables = _tables(best.rows)
        reason = why_any_shared(graph, [made for row in best.rows for made in row.made])
        if reason is None and len(tables) > 1:
            reason = _why_not_joined(best.rows[0].ids, tables)
        return best if reason is None else Refusal(node.name, reason)

    def rewrite(self, editor: GraphEditor, match: _Rows) -> None:
        """Write one Gather for all rows."""
        node, part, first = match.node, NodeParts(editor, match.node), match.rows[0]
        columns = [row.column for row in match.rows]
        batch: Dims = list(first.ids.shape)[:-1]
        index = first.ids
        if columns != list(range(int(first.ids.shape[-1]))):
            places = part.ints(columns)
            index = part.add("Gather", index, places, shape=[*batch, len(columns)], axis=len(batch))
        tables = _tables(match.rows)
        joined: gs.Constant = tables[0]
        if len(tables) > 1:
            joined = joined_constant(editor.new_name(f"{node.name}_tables"), tables, 0)
            index = _moved_index(part, index, match.rows, tables)
        width = int(joined.shape[1])
        made = part.add("Gather", joined, index, shape=[*batch, len(columns), width], axis=0)
        if not first.own_axis:
            made = part.reshaped(made, [*batch, len(columns) * width])
        inputs = list(node.inputs)
        inputs[match.start : match.start + len(columns)] = [made]
        if len(inputs) > 1:
            made = part.add("Concat", *inputs, shape=list(node.outputs[0].shape), **node.attrs)
        editor.replace(node.outputs[0], made)


def _row(concat: gs.Node, piece: gs.Tensor) -> _Row | None:
    """What is known of a piece that is a row of a table."""
    made, gather = [piece], piece
    view = made_by(piece, "Unsqueeze")
    if view is not None:
        made.append(gather := view.inputs[0])
    node = made_by(gather, "Gather")
    if node is None or not isinstance(node.inputs[0], gs.Constant) or node.attrs.get("axis", 0):
        return None
    table, index = node.inputs
    pick = made_by(index, "Gather")
    if pick is None or dims(piece) is None or len(table.shape) != 2:
        return None
    ids, shape = pick.inputs[0], dims(pick.inputs[0])
    if shape is None or not isinstance(shape[-1], int) or dims(pick.inputs[1]) != []:
        return None
    columns = integers(pick.inputs[1])
    rank, axis = len(piece.shape), int(concat.attrs["axis"]) % len(piece.shape)
    axes = None if view is None else integers(view.inputs[1])
    fits = axis == rank - 1 if view is None else axes in ([rank - 2], [-2]) and axis == rank - 2
    last = int(pick.attrs.get("axis", 0)) % len(shape) == len(shape) - 1
    if not fits or not last or not columns or len(shape) < 2:
        return None
    return _Row(table, ids, columns[0] % shape[-1], view is not None, (*made, index))


def _why_not_joined(ids: gs.Tensor, tables: Sequence[gs.Constant]) -> str | None:
    held = sum(table.values.nbytes for table in tables)
    if held > MOST_BYTES:
        return f"its tables have {held} bytes; {MOST_BYTES} are joined at most"
    total, largest = sum(int(table.shape[0]) for table in tables), np.iinfo(ids.dtype).max
    if 2 * total > largest:
        return f"its tables have {total} rows, which '{ids.name}' cannot count twice"
    return None


def _run(rows: Sequence[_Row | None]) -> tuple[_Row, ...]:
    """The rows from the first on that can be read with it."""
    run: list[_Row] = []
    for row in rows:
        if row is None or (run and not run[0].joins(row)):
            break
        run.append(row)
    return tuple(run)


def _tables(rows: Sequence[_Row]) -> list[gs.Constant]:
    return list({id(row.table): row.table for row in rows}.values())


def _moved_index(
    part: NodeParts, index: gs.Tensor, rows: Sequence[_Row], tables: Sequence[gs.Constant]
) -> gs.Tensor:
    """The index in all tables of each row; behind all of them where it is outside its own."""
    lengths = [int(table.shape[0]) for table in tables]
    begins = dict(zip(map(id, tables), np.cumsum([0, *lengths]), strict=False))

    def numbers(name: str, held: NDArray[np.int64]) -> gs.Constant:
        return part.editor.constant(f"{part.node.name}_{name}", held, index.dtype)

    def computed(op: str, *inputs: gs.Tensor) -> gs.Tensor:
        return part.add(op, *inputs, shape=list(index.shape), like=index)

    rows_of_each = np.array([int(row.table.shape[0]) for row in rows])
    starts = numbers("starts", np.array([int(begins[id(row.table)]) for row in rows]))
    own = computed("Mod", index, numbers("rows", rows_of_each))
    above = computed("Sub", index, numbers("last", rows_of_each - 1))
    below = computed("Sub", numbers("first", -rows_of_each), index)
    outside = computed("Max", above, below, numbers("zero", np.array([0])))
    is_outside = computed("Min", outside, numbers("one", np.array([1])))
    behind = computed("Mul", is_outside, numbers("behind", np.array([sum(lengths)])))
    return computed("Add", computed("Add", own, starts), behind)
