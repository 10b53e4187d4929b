"""The nodes that cannot be lowered: all of them, each with its reason."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

import onnx_graphsurgeon as gs

from wpk.errors import GraphError, UnsupportedError, WpkError
from wpk.graph_passes import ONNX_DOMAINS
from wpk.lowering.free_axis import extent_of, worded
from wpk.lowering.partition import element_type, functions_of
from wpk.lowering.refusal import RefusedError, UnknownInputError
from wpk.lowering.state import LoweringState
from wpk.lowering.views import NotAViewError, View


@dataclass(frozen=True)
class _Row:
    """A line of the table."""

    node: str
    operator: str
    why: str
    is_bug: bool


class RefusedNodes:
    """Collects refusals while lowering goes on behind them.

    Args:
        state: What the readers of a refused node are given a stand-in in.
        reasons: Why graph passes left nodes alone, by the node's name.

    Attributes:
        nodes: Why nodes of the graph are refused, also those that only read what others would have made.
        can_be_handed: Whether these nodes are all that is refused, and no input of the model is.
    """

    def __init__(self, state: LoweringState, reasons: Mapping[str, str]) -> None:
        """Begin with none."""
        self._state = state
        self._reasons = reasons
        self._functions = functions_of(state.graph)
        self._rows: dict[_Row, None] = {}
        self._bug: Exception | None = None
        self.nodes: dict[str, str] = {}
        self.can_be_handed = True

    def add(self, node: gs.Node, why: Exception) -> None:
        """Note why a node of the graph is refused, and go on as if it were not."""
        inner = why.node if isinstance(why, RefusedError) else None
        nodes = [inner] if inner is not None else self._onnx_nodes(node)
        words = self._note(" + ".join(n.name for n in nodes), " + ".join(n.op for n in nodes), why)
        self.nodes.setdefault(node.name, words)
        self.stand_in(node)

    def stand_in(self, node: gs.Node) -> None:
        """Give a node's readers what they need to be looked at."""
        for tensor in node.outputs:
            self._pretend(tensor)

    def add_port(self, role: str, tensor: gs.Tensor, why: Exception) -> None:
        """Note why an input or output of the model is refused: an output with the node that makes it."""
        if role == "output" and tensor.inputs:
            node = tensor.inputs[0]
            if node.name not in self.nodes:
                self.add(node, why)
            return
        self._note(tensor.name, role, why)
        self.can_be_handed = False
        if role == "input":
            self._pretend(tensor)

    def raise_all(self, *, fallback: bool) -> NoReturn:
        """Raise for all of them, of which there are some.

        Args:
            fallback: Whether ONNX Runtime was to execute them.

        Raises:
            UnsupportedError: Naming all of them.
            GraphError: There is nothing but failures that are bugs.
        """
        rows = list(self._rows)
        wide = [max(len(row.node) for row in rows), max(len(row.operator) for row in rows)]
        table = "\n".join(
            f"  {row.node:<{wide[0]}}  {row.operator:<{wide[1]}}  {row.why}" for row in rows
        )
        if all(row.is_bug for row in rows):
            raise GraphError(
                f"{len(rows)} nodes could not be lowered (node, operator, why):\n{table}",
                fix="report this as a bug, with the model",
            ) from self._bug
        raise UnsupportedError(
            f"{len(rows)} nodes are not supported (node, operator, why):\n{table}",
            fix=self._fix(fallback),
        ) from self._bug

    def _fix(self, fallback: bool) -> str:
        if not self.can_be_handed:
            return "decide the sizes of the model's inputs, --shapes NAME:1x3x224x224, or export it with others"
        if fallback:
            return "replace these operators before exporting"
        return "replace these operators before exporting, or let ONNX Runtime execute them: --fallback on"

    def _onnx_nodes(self, node: gs.Node) -> list[gs.Node]:
        """The nodes of the model that a node of the graph stands for, as the passes left them."""
        function = self._functions.get(node.op) if node.domain not in ONNX_DOMAINS else None
        if function is None:
            return [node]
        return [inner for inner in function.nodes if inner.op != "Constant"]

    def _note(self, name: str, operator: str, why: Exception) -> str:
        if isinstance(why, UnknownInputError):
            return str(why)
        is_bug = not isinstance(why, RefusedError | NotAViewError)
        text = worded(str(why), list(self._state.free))
        if is_bug:
            self._bug = self._bug or why
            text = f"{type(why).__name__}: {text} (a bug: please report it)"
        reason = self._reasons.get(name)
        said = f"{text}; {reason}" if reason else text
        self._rows[_Row(name, operator, said, is_bug)] = None
        return said

    def _pretend(self, tensor: gs.Tensor) -> None:
        """Give a tensor whose shape is known a place, so that its readers are looked at too."""
        state = self._state
        shape = None if tensor.name in state.views else state.sure_shape(tensor)
        if not tensor.name or shape is None:
            return
        try:
            leading = extent_of(shape[0])
            view = state.memory.alone(tensor.name, element_type(tensor), shape, leading)
        except RefusedError:
            return
        state.views[tensor.name] = view


@contextmanager
def refusals(state: LoweringState, note: Callable[[Exception], None]) -> Iterator[None]:
    """Hand what goes wrong inside to ``note``, so that lowering goes on.

    Raises:
        NotAViewError: The layout of a tensor stands in the way that may still become plain.
        WpkError: Whatever is raised inside.
    """
    try:
        yield
    except WpkError:
        raise
    except NotAViewError as obstacle:
        if obstacle.source not in state.plain:
            raise
        note(obstacle)
    except Exception as error:  # a refusal, or a bug that must not hide the refusals after it
        note(error)


def require_shape(tensor: gs.Tensor, view: View | None) -> None:
    """Check that a node's result has the shape that ONNX infers for it.

    Raises:
        RefusedError: It has another one.
    """
    if view is None or tensor.shape is None:
        return
    known = list(tensor.shape) or [1]  # names of sizes say nothing: exporters use them freely
    if len(known) != len(view.shape) or any(
        isinstance(n, int) and n != m for n, m in zip(known, view.shape, strict=True)
    ):
        words = ", ".join(str(n) for n in known)
        raise RefusedError(f"its result would have shape {view.shape}, where ONNX has ({words})")
