"""Run a group of passes, round after round, until none of them finds anything to do."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.did_you_mean import choices_words
from wpk.errors import GraphError
from wpk.graph_passes.core.base import GraphPass, PassResult, Refusal
from wpk.graph_passes.core.known_types import KnownTypes
from wpk.graph_passes.core.shapes import has_all_sizes, infer_shapes
from wpk.graph_passes.core.sites import Site

# Each round lets a rewrite enable another one; the deepest chain known (export noise, folding,
# recognition, absorption) takes five. More means that two passes undo each other.
MAX_ROUNDS = 20

RoundObserver = Callable[[str, int, int], None]
"""Called after each run of a pass with its name, the round (from 1) and the number of rewrites."""


@dataclass(frozen=True)
class PassRecord:
    """What one pass did over all rounds of its group.

    Attributes:
        name: The pass.
        rewritten: Rewrites, summed over the rounds.
        refusals: What it left alone in the last round, each with its reason.
        skipped: Whether it was skipped on request, and so did nothing.
        sites: Where it had a choice, each once, over all rounds.
    """

    name: str
    rewritten: int
    refusals: tuple[Refusal, ...]
    skipped: bool = False
    sites: tuple[Site, ...] = ()


def check_skips(skip: Collection[str], allowed: Collection[str]) -> None:
    """Refuse names of passes that do not exist.

    Raises:
        GraphError: A name is unknown; the message lists the allowed ones.
    """
    unknown = sorted(set(skip) - set(allowed))
    if unknown:
        raise GraphError(
            f"no pass is called {', '.join(repr(name) for name in unknown)}",
            fix=choices_words(unknown[0], sorted(allowed)),
        )


def run_passes(
    graph: gs.Graph,
    passes: Sequence[GraphPass],
    skip: Collection[str] = frozenset(),
    progress: RoundObserver | None = None,
    *,
    other_passes: Collection[str] = frozenset(),
    known: KnownTypes | None = None,
    inferred: bool = False,
) -> list[PassRecord]:
    """Run ``passes`` in order, in rounds, until a whole round rewrites nothing.

    Shapes and types are inferred before the first pass and again after each pass that rewrote. A pass that rewrote
    nothing does not run again on the same graph: it would find the same.

    Args:
        graph: Rewritten in place.
        passes: The group, in order.
        skip: Names of passes not to run.
        progress: Told of each run of a pass.
        other_passes: Names that ``skip`` may hold besides this group's, because they belong to
            another group.
        known: What was inferred of nodes before; by default nothing.
        inferred: Whether shapes were inferred since the graph was last changed.

    Returns:
        One record for each pass, in order.

    Raises:
        GraphError: ``skip`` holds an unknown name, a pass failed, or the group did not settle.
    """
    check_skips(skip, {*(each.name for each in passes), *other_passes})
    active = [each for each in passes if each.name not in skip]
    rewritten = dict.fromkeys((each.name for each in passes), 0)
    refusals: dict[str, tuple[Refusal, ...]] = dict.fromkeys(rewritten, ())
    sites: dict[str, dict[Site, None]] = {name: {} for name in rewritten}
    known = KnownTypes() if known is None else known
    if not (inferred and has_all_sizes(graph)):
        infer_shapes(graph, known)
    for results in _Rounds(graph, active, known, progress).until_settled():
        for name, result in results.items():
            rewritten[name] += result.rewritten
            refusals[name] = tuple(result.refusals)
            sites[name] |= dict.fromkeys(result.sites)
    return [
        PassRecord(n, rewritten[n], refusals[n], skipped=n in skip, sites=tuple(sites[n]))
        for n in (each.name for each in passes)
    ]


class _Rounds:
    """The rounds of a group on one graph, and what each pass found when it ran last."""

    def __init__(
        self,
        graph: gs.Graph,
        passes: Sequence[GraphPass],
        known: KnownTypes,
        progress: RoundObserver | None,
    ) -> None:
        self._graph, self._passes = graph, passes
        self._types, self._progress = known, progress
        self._changes = 0
        self._settled: dict[str, tuple[int, PassResult]] = {}
        self._shapes: dict[str, tuple[object, ...]] | None = None

    def until_settled(self) -> Iterator[dict[str, PassResult]]:
        """Yield what each round did, up to the one that rewrites nothing."""
        for number in range(1, MAX_ROUNDS + 1):
            results = {each.name: self._result(each, number) for each in self._passes}
            yield results
            firing = [name for name, result in results.items() if result.rewritten]
            if not firing:
                return
        raise GraphError(
            f"passes still rewrite after {MAX_ROUNDS} rounds: {', '.join(firing)}",
            fix="skip one of them with --skip-pass and report this as a bug",
        )

    def _result(self, each: GraphPass, number: int) -> PassResult:
        """Run a pass, unless nothing has changed since it found nothing to do."""
        changes, result = self._settled.get(each.name, (-1, PassResult()))
        if changes != self._changes:
            result = self._run(each)
        if self._progress is not None:
            self._progress(each.name, number, result.rewritten)
        return result

    def _run(self, each: GraphPass) -> PassResult:
        """Run a pass once, and infer shapes again if it rewrote."""
        graph, before = self._graph, list(map(id, self._graph.nodes))
        shapes = _known_shapes(graph) if self._shapes is None else self._shapes
        result = each(graph, is_well_formed=self._shapes is not None)
        self._shapes = shapes
        if result.rewritten:
            infer_shapes(graph, self._types)
            self._shapes = _require_same_shapes(graph, shapes, each.name)
        if result.rewritten or list(map(id, graph.nodes)) != before:
            self._changes += 1
        if not result.rewritten:
            self._settled[each.name] = self._changes, result
        return result


def _known_shapes(graph: gs.Graph) -> dict[str, tuple[object, ...]]:
    """What is known of the shapes of all tensors that nodes make, by name."""
    made = [tensor for node in graph.nodes for tensor in node.outputs]
    return {t.name: tuple(t.shape) for t in made if t.name and t.shape is not None}


def _require_same_shapes(
    graph: gs.Graph, before: Mapping[str, tuple[object, ...]], name: str
) -> dict[str, tuple[object, ...]]:
    """Check that tensors kept their sizes: a name stands for one value through all passes; return these.

    Raises:
        GraphError: One has other sizes; names the pass.
    """
    now = _known_shapes(graph)
    for tensor, shape in now.items():
        old = before.get(tensor, shape)
        if old == shape:
            continue
        pairs = zip(old, shape, strict=False)
        if len(old) != len(shape) or any(
            isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs
        ):
            raise GraphError(
                f"tensor '{tensor}' has shape {shape} after pass {name}, had {old} before it",
                fix="check the shapes that the model declares; where they are right, skip the pass "
                f"with --skip-pass {name} and report this as a bug",
            )
    return now
