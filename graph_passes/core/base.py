"""The contract of a graph pass: what it is given, what it must keep, what it reports.

A pass rewrites a `gs.Graph` in place and says what it did not rewrite and why. It never looks
inside local functions: a node that calls one is opaque. A *leftover* of a pass (dead nodes, nodes
out of order) is tidied here, so a pass only has to connect tensors correctly.
"""

import abc
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, final

import onnx_graphsurgeon as gs

from wpk.errors import GraphError, WpkError
from wpk.graph_passes.core.query import tensors_of
from wpk.graph_passes.core.sites import Site, is_changed, site_of
from wpk.graph_passes.core.tidy import remove_dead_nodes, sort_nodes

TensorSignature = tuple[str, object, tuple[object, ...] | None]


@dataclass(frozen=True)
class Refusal:
    """Why a pass left a node as it was.

    Attributes:
        node: Name of the node that the pass would have rewritten.
        reason: One clause that names what stands in the way, e.g. "weight 'w' is not constant".
    """

    node: str
    reason: str


def refusal(node: gs.Node, reason: str | None) -> Refusal | None:
    """Return the refusal of a node that is left alone for a reason; None where there is no reason."""
    return None if reason is None else Refusal(node.name, reason)


@dataclass
class PassResult:
    """What one run of a pass did.

    Attributes:
        rewritten: Number of rewrites; 0 means that the graph is unchanged.
        refusals: One entry for each node that looked like a match and was left alone.
        sites: The places at which the pass had a choice, whatever it did there.
    """

    rewritten: int = 0
    refusals: list[Refusal] = field(default_factory=list)
    sites: list[Site] = field(default_factory=list)

    def refuse(self, node: gs.Node, reason: str) -> None:
        """Note that ``node`` was left alone."""
        self.refusals.append(Refusal(node.name, reason))


class GraphPass(abc.ABC):
    """One family of rewrites that do not change what the graph computes.

    Subclasses set `name` (kebab-case; the word that ``--skip-pass`` takes) and write `apply`.
    Calling the pass is final: it checks `requires`, applies, removes dead nodes, sorts the rest
    topologically (stable: independent nodes keep their order), and checks that the graph's inputs
    and outputs kept their names, order, types and known dimensions.

    A pass that is a choice, since a graph may be faster without some of its rewrites, or with rewrites that usually
    make it slower, asks `takes` at each place before it rewrites there.

    Attributes:
        is_choice: Whether it has a choice anywhere.
        is_usual: Whether it rewrites there unless the site is changed; else only where it is.
        changed: Keys of the sites that are decided otherwise than usually (`wpk.graph_passes.core.sites`).
    """

    name: ClassVar[str]
    is_choice: ClassVar[bool] = False
    is_usual: ClassVar[bool] = True
    changed: Collection[str] = frozenset()

    @abc.abstractmethod
    def apply(self, graph: gs.Graph) -> PassResult:
        """Rewrite ``graph`` in place.

        Every tensor made here should carry dtype and shape where they are known; node and tensor
        names must be new (`GraphEditor` gives both). Constants are never edited in place, since
        another node may read them.
        """

    def requires(self, graph: gs.Graph) -> str | None:
        """Say why ``graph`` cannot be given to this pass at all; None when it can."""
        del graph
        return None

    @final
    def takes(self, result: PassResult, nodes: Sequence[gs.Node], words: str) -> bool:
        """Whether to rewrite at a place where that is a choice; what is taken back is refused.

        Args:
            result: Told of the site.
            nodes: What is decided over, in an order that equal places share; the last is named in the refusal.
            words: What is so if the site is not changed, as a clause.
        """
        if not self.is_choice:
            raise ValueError(f"pass {self.name} does not say that it is a choice")
        site = site_of(self.name, nodes, words)
        result.sites.append(site)
        is_rewritten = is_changed(site, self.changed) is not self.is_usual
        if self.is_usual and not is_rewritten:
            result.refuse(nodes[-1], f"taken back: {words} ({site.key})")
        return is_rewritten

    @final
    def __call__(self, graph: gs.Graph, *, is_well_formed: bool = False) -> PassResult:
        """Apply the pass under its contract.

        Args:
            graph: Rewritten in place.
            is_well_formed: Whether this was checked since the graph was last changed.

        Raises:
            GraphError: The graph is not acceptable, or the pass broke the contract or failed; the
                message names the pass.
        """
        reason = None if is_well_formed else _why_malformed(graph)
        reason = reason or self.requires(graph)
        if reason is not None:
            raise GraphError(
                f"pass {self.name} cannot run: {reason}",
                fix=f"skip it with --skip-pass {self.name}, or report the model as a bug",
            )
        before, nodes = _interface(graph), [id(node) for node in graph.nodes]
        try:
            result = self.apply(graph)
            differs = result.rewritten or [id(node) for node in graph.nodes] != nodes
            if differs:
                remove_dead_nodes(graph)
                sort_nodes(graph)
        except WpkError:
            raise
        except Exception as error:
            raise GraphError(
                f"pass {self.name} failed{_place(error)}: {type(error).__name__}: {error}",
                fix=f"skip it with --skip-pass {self.name} and report this as a bug",
            ) from error
        reason = _why_changed(before, _interface(graph))
        reason = reason or (_why_malformed(graph) if differs else None)
        if reason is not None:
            raise GraphError(
                f"pass {self.name} broke the graph: {reason}",
                fix=f"skip it with --skip-pass {self.name} and report this as a bug",
            )
        return result


def _place(error: Exception) -> str:
    """The node that a pass was at when it failed, in words; nothing where that cannot be told."""
    place, trace = "", error.__traceback__
    while trace is not None:
        node = trace.tb_frame.f_locals.get("node")
        if isinstance(node, gs.Node):
            place = f" at node '{node.name}' ({node.op})"
        trace = trace.tb_next
    return place


def _why_malformed(graph: gs.Graph) -> str | None:
    """Names must be unique: graphsurgeon compares nodes and tensors by name, not identity."""
    nodes: set[str] = set()
    for node in graph.nodes:
        if not node.name:
            return f"a {node.op} node has no name"
        if node.name in nodes:
            return f"two nodes are called '{node.name}'"
        nodes.add(node.name)
    tensors: dict[str, int] = {}
    for tensor in (*graph.inputs, *graph.outputs, *tensors_of(graph.nodes)):
        if tensor.name and tensors.setdefault(tensor.name, id(tensor)) != id(tensor):
            return f"two tensors are called '{tensor.name}'"
    return None


def _interface(graph: gs.Graph) -> tuple[list[TensorSignature], list[TensorSignature]]:
    return _signatures(graph.inputs), _signatures(graph.outputs)


def _signatures(tensors: list[gs.Tensor]) -> list[TensorSignature]:
    return [(t.name, t.dtype, None if t.shape is None else tuple(t.shape)) for t in tensors]


def _why_changed(
    before: tuple[list[TensorSignature], list[TensorSignature]],
    after: tuple[list[TensorSignature], list[TensorSignature]],
) -> str | None:
    for role, old, new in zip(("input", "output"), before, after, strict=True):
        if [name for name, _, _ in old] != [name for name, _, _ in new]:
            return f"the graph's {role}s were {[s[0] for s in old]}, are {[s[0] for s in new]}"
        for (name, old_dtype, old_shape), (_, new_dtype, new_shape) in zip(old, new, strict=True):
            if old_dtype is not None and old_dtype != new_dtype:
                return f"{role} '{name}' had type {old_dtype}, has {new_dtype}"
            if not _refines(old_shape, new_shape):
                return f"{role} '{name}' had shape {old_shape}, has {new_shape}"
    return None


def _refines(old: tuple[object, ...] | None, new: tuple[object, ...] | None) -> bool:
    """Whether every number that the old shape knew still holds."""
    if old is None:
        return True
    if new is None or len(old) != len(new):
        return False
    return all(not isinstance(a, int) or a == b for a, b in zip(old, new, strict=True))
