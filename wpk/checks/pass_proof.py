"""Prove on this very model that its graph passes kept what it computes.

The rewritten graph is compared with the original in float64 (`wpk.checks.pass_check`) on the inputs
that the plan will be checked on: of a large batch on a few samples where both graphs compute each alone
(`wpk.checks.samples.few`), but of inputs that a person gave on all. Where they differ, the passes run once more, one
at a time, until the first is found behind which they do.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import onnx_graphsurgeon as gs

from wpk.assembly import input_ports
from wpk.checks.evaluation import EvaluationError, Opinions
from wpk.checks.float64_nodes import Array
from wpk.checks.pass_check import Difference, PassComparison, compare_graphs
from wpk.checks.samples.batch import Batch, NotAloneError
from wpk.checks.samples.few import SomeOf, batch_of
from wpk.checks.scope import Sample, SampleRound, Scope, rounds
from wpk.dtypes import Precision
from wpk.errors import VerificationError
from wpk.lowering.flat_graph import FlatGraph, flatten
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import replay_passes
from wpk.plan import Check, Outcome, Port
from wpk.progress import Progress
from wpk.reused_memory import let_go

STAGE = "checking graph passes"


@dataclass(frozen=True)
class Interface:
    """What a lowered model asks of its caller.

    Attributes:
        inputs: Its inputs.
        free: Free dimensions with their tuned values.
        precision: What multiplications may use.
    """

    inputs: tuple[Port, ...]
    free: Mapping[str, int]
    precision: Precision


def interface_of(lowered: LoweredModel) -> Interface:
    """Return what a lowered model asks of its caller."""
    program = lowered.program
    return Interface(input_ports(program), program.free, lowered.source.precision)


@dataclass(frozen=True)
class PassProof:
    """What comparing the graphs found, and what a plan of the model is to be checked on.

    Attributes:
        lowered: The model.
        scope: How thoroughly.
        rounds: On what.
        checks: What was compared: the graphs, on the first sample of each round; then every kind of
            node, evaluated in two ways.
        unrounded: For each round the rewritten graph's outputs in float64, nothing rounded.
    """

    lowered: LoweredModel
    scope: Scope
    rounds: tuple[SampleRound, ...]
    checks: tuple[Check, ...]
    unrounded: tuple[Mapping[str, SomeOf], ...]


def prove_passes(lowered: LoweredModel, scope: Scope, progress: Progress) -> PassProof:
    """Compare a model's rewritten graph with the original on the first sample of each round.

    Args:
        lowered: Both graphs.
        scope: Which sizes and inputs.
        progress: Told of every node.
    """
    rewritten = flatten(lowered.graph)
    looked_at = tuple(rounds(interface_of(lowered), scope, lowered.free_sizes))
    opinions = None if scope.quick else Opinions()
    checks: list[Check] = []
    unrounded: list[Mapping[str, SomeOf]] = []
    for done, each in enumerate(looked_at):
        tell = partial(progress, STAGE, done, len(looked_at))
        sample = each.samples[0]
        asked = opinions if done == 0 else None  # kinds of nodes do not depend on the batch
        told = None if asked is None else Opinions()
        batch = None if each.given else batch_of(sample.arrays)
        few = _by_few(lowered.original, rewritten, sample.arrays, told, tell, batch)
        if few is not None:
            opinions = told or opinions
        try:
            found = few or compare_graphs(lowered.original, rewritten, sample.arrays, asked, tell)
        except EvaluationError as error:
            name = f"graph passes, {sample.name}"
            checks.append(Check(name, Outcome.INCONCLUSIVE, error.what))
            unrounded.append({})
            continue
        checks.append(_check(lowered, sample, found, None if few is None else batch))
        unrounded.append(found.outputs)
    if opinions is not None:
        checks.append(opinions.check())
    progress(STAGE, len(looked_at), len(looked_at))
    let_go()
    return PassProof(lowered, scope, looked_at, tuple(checks), tuple(unrounded))


def proven(lowered: LoweredModel, scope: Scope, progress: Progress) -> PassProof:
    """Return the proof if it holds; the arguments are those of `prove_passes`.

    Raises:
        VerificationError: A pass changed what the model computes; names the first one.
    """
    proof = prove_passes(lowered, scope, progress)
    failed = next((check for check in proof.checks if check.failed), None)
    if failed is not None:
        raise VerificationError(
            f"graph passes changed what the model computes: {failed.detail}",
            fix="leave out the pass with --skip-pass and report this as a bug",
        )
    return proof


def _by_few(
    original: FlatGraph,
    rewritten: FlatGraph,
    inputs: Mapping[str, Array],
    opinions: Opinions | None,
    tell: Callable[[], None],
    batch: Batch | None,
) -> PassComparison | None:
    """Compare a few samples; None where all must be: they are not computed alone, or something is not right."""
    if batch is None:
        return None
    try:
        found = compare_graphs(original, rewritten, inputs, opinions, tell, batch)
    except (NotAloneError, EvaluationError):
        return None
    return None if found.differences else found


def _check(
    lowered: LoweredModel, sample: Sample, found: PassComparison, batch: Batch | None
) -> Check:
    """What was found; with a batch only of the samples of it that are kept."""
    name = f"graph passes, {sample.name}"
    if found.differences:
        where = _first_wrong_pass(lowered, sample, found.differences[0])
        more = len(found.differences) - 1
        return Check(name, Outcome.FAILED, where + (f"; and {more} tensors more" if more else ""))
    judged = f", {found.bounded} of them within what arithmetic allows" if found.bounded else ""
    of = (
        f"; {batch.kept} of {batch.count} samples, which both graphs compute alike" if batch else ""
    )
    words = f"{found.compared} tensors are the model's in float64{judged}{of}"
    return Check(name, Outcome.OK, words)


def _first_wrong_pass(lowered: LoweredModel, sample: Sample, last: Difference) -> str:
    """Return the first pass after which the graph differs, and where it does."""
    wrong: list[str] = []

    def observe(name: str, graph: gs.Graph) -> None:
        if not wrong:
            found = compare_graphs(lowered.original, flatten(graph), sample.arrays)
            if found.differences:
                wrong.append(f"pass '{name}': {found.differences[0]}")

    replay_passes(lowered.source, observe)
    return wrong[0] if wrong else f"no single pass, but all together: {last}"
