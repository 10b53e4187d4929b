"""Passes that look at one node after the other.

A rule says which nodes it starts from, what it needs to know of the place around one of them or why the
node stays, and what takes its place. The loop is here.
"""

import abc
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar, final

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import DTypeLike, NDArray

from wpk.graph_passes.core.base import GraphPass, PassResult, Refusal
from wpk.graph_passes.core.editor import Attributes, GraphEditor
from wpk.graph_passes.core.kinds import Numbers, numbers_of
from wpk.graph_passes.core.query import live_nodes

Match = TypeVar("Match")


class Rule(GraphPass, Generic[Match]):
    """A pass that rewrites around single nodes, in the order of the graph.

    Subclasses set `name` and `ops`, and write `match` and `rewrite`. A node that a rewrite has detached
    is not looked at any more, one that it has added waits for the next round.
    """

    ops: ClassVar[tuple[str, ...]] = ()
    """The standard operators whose nodes the rule starts from; without any, it is every node."""

    in_double: ClassVar[bool] = True
    """Whether it looks at nodes of fp64; a rule that knows constants as fp32 has them does not."""

    choice_words: ClassVar[str] = ""
    """What is so where nothing is changed, as a clause, of a rule that is a choice."""

    def decided_over(self, match: Match) -> Sequence[gs.Node]:
        """Return the nodes that a choice is about, in the order of the graph.

        Raises:
            NotImplementedError: The rule is no choice.
        """
        raise NotImplementedError(f"pass {self.name} is no choice")

    @abc.abstractmethod
    def match(self, graph: gs.Graph, node: gs.Node) -> Match | Refusal | None:
        """Look at one node without changing the graph.

        Returns:
            What `rewrite` needs to know; a refusal where the node looks like a match and must stay; None
            where it does not look like one.
        """

    @abc.abstractmethod
    def rewrite(self, editor: GraphEditor, match: Match) -> None:
        """Put what the match becomes in its place; this counts as one rewrite."""

    @final
    def apply(self, graph: gs.Graph) -> PassResult:
        """Rewrite every match."""
        result = PassResult()
        editor: GraphEditor | None = None  # it reads all names: most rules find nothing
        for node in live_nodes(graph, *self.ops) if self.ops else list(graph.nodes):
            if not self.in_double and numbers_of(node) is Numbers.FP64:
                continue
            found = self.match(graph, node)
            if isinstance(found, Refusal):
                result.refusals.append(found)
            elif found is not None and self._takes(result, found):
                editor = GraphEditor(graph) if editor is None else editor
                self.rewrite(editor, found)
                result.rewritten += 1
        return result

    def _takes(self, result: PassResult, match: Match) -> bool:
        """Whether to rewrite a match."""
        if not self.is_choice:
            return True
        return self.takes(result, self.decided_over(match), self.choice_words)


@dataclass(frozen=True)
class NewConstant:
    """A constant to be made: its wanted name, its values, and its type where it is another one."""

    name: str
    values: NDArray[np.generic]
    dtype: DTypeLike | None = None


@dataclass(frozen=True)
class Replacement:
    """A tensor, and the node that is to make it.

    Attributes:
        output: The tensor, whose name and readers stay.
        op: The standard operator; None where the only input takes the tensor's place.
        inputs: What the node reads, constants to be made among it.
        attrs: The node's attributes.
    """

    output: gs.Tensor
    op: str | None
    inputs: Sequence[gs.Tensor | NewConstant]
    attrs: Attributes = field(default_factory=dict)


class ReplacementRule(Rule[Replacement]):
    """A rule whose matches become one node each."""

    @final
    def rewrite(self, editor: GraphEditor, match: Replacement) -> None:
        """Write the node, and let the readers of the tensor read what it makes."""
        inputs = [
            editor.constant(each.name, each.values, each.dtype)
            if isinstance(each, NewConstant)
            else each
            for each in match.inputs
        ]
        new = inputs[0]
        if match.op is not None:
            new = editor.add(match.op, inputs, like=match.output, attrs=match.attrs)
        editor.replace(match.output, new)
