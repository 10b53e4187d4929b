"""Run a group of passes, round after round, until none of them finds anything to do."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.did_you_mean import choices_words
from wpk.errors import GraphError
from wpk.graph_passes.core.base import GraphPass, PassResult, Refusal
from wpk.graph_passes.core.shapes import infer_shapes
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
) -> list[PassRecord]:
    """Run ``passes`` in order, in rounds, until a whole round rewrites nothing.

    Shapes and types are inferred before the first pass and again after each pass that rewrote.

    Args:
        graph: Rewritten in place.
        passes: The group, in order.
        skip: Names of passes not to run.
        progress: Told of each run of a pass.
        other_passes: Names that ``skip`` may hold besides this group's, because they belong to
            another group.

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
    infer_shapes(graph)
    for results in _rounds(graph, active, progress):
        for name, result in results.items():
            rewritten[name] += result.rewritten
            refusals[name] = tuple(result.refusals)
            sites[name] |= dict.fromkeys(result.sites)
    return [
        PassRecord(n, rewritten[n], refusals[n], skipped=n in skip, sites=tuple(sites[n]))
        for n in (each.name for each in passes)
    ]


def _rounds(
    graph: gs.Graph, passes: Sequence[GraphPass], progress: RoundObserver | None
) -> Iterator[dict[str, PassResult]]:
    """Yield what each round did, up to the one that rewrites nothing."""
    for number in range(1, MAX_ROUNDS + 1):
        results = _run_round(graph, passes, number, progress)
        yield results
        firing = [name for name, result in results.items() if result.rewritten]
        if not firing:
            return
    raise GraphError(
        f"passes still rewrite after {MAX_ROUNDS} rounds: {', '.join(firing)}",
        fix="skip one of them with --skip-pass and report this as a bug",
    )


def _run_round(
    graph: gs.Graph, passes: Sequence[GraphPass], number: int, progress: RoundObserver | None
) -> dict[str, PassResult]:
    """Run each pass once, and infer shapes again behind those that rewrote."""
    results = {}
    for each in passes:
        known = _known_shapes(graph)
        results[each.name] = result = each(graph)
        if result.rewritten:
            infer_shapes(graph)
            _require_same_shapes(graph, known, each.name)
        if progress is not None:
            progress(each.name, number, result.rewritten)
    return results


def _known_shapes(graph: gs.Graph) -> dict[str, tuple[object, ...]]:
    """What is known of the shapes of all tensors that nodes make, by name."""
    made = [tensor for node in graph.nodes for tensor in node.outputs]
    return {t.name: tuple(t.shape) for t in made if t.name and t.shape is not None}


def _require_same_shapes(
    graph: gs.Graph, before: Mapping[str, tuple[object, ...]], name: str
) -> None:
    """Check that tensors kept their sizes: a name stands for one value through all passes.

    Raises:
        GraphError: One has other sizes; names the pass.
    """
    for tensor, shape in _known_shapes(graph).items():
        old = before.get(tensor, shape)
        pairs = zip(old, shape, strict=False)
        if len(old) != len(shape) or any(
            isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs
        ):
            raise GraphError(
                f"tensor '{tensor}' has shape {shape} after pass {name}, had {old} before it",
                fix="check the shapes that the model declares; where they are right, skip the pass "
                f"with --skip-pass {name} and report this as a bug",
            )
