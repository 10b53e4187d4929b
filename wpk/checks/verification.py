"""Check a plan against the model it was made from: the whole engine, and every operator alone."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from wpk.assembly import EvidenceBook
from wpk.checks.evaluation import EvaluationError, draws
from wpk.checks.float64_nodes import Array
from wpk.checks.in_turn import check_in_turn, executes_all
from wpk.checks.limits import OutputDistance
from wpk.checks.model_check import output_error
from wpk.checks.operator_check import OperatorCheck, check_operators
from wpk.checks.operator_reference import GraphReference
from wpk.checks.pass_proof import PassProof
from wpk.checks.scope import SampleRound, Tolerance, require_inputs
from wpk.checks.testimony import Testimony, Witness
from wpk.checks.witness import require_onnxruntime
from wpk.engine import Engine
from wpk.errors import VerificationError, WrongModelError
from wpk.execution import Device
from wpk.lowering.program import Program
from wpk.plan import Check, Outcome, Plan, PlanBundle
from wpk.progress import Progress
from wpk.reused_memory import let_go

Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Verification:
    """The outcome of all checks.

    Attributes:
        passes: The graph passes, at every size checked.
        operators: Every operator alone, at every size checked.
        whole: The whole engine, a check for each seed and size.
    """

    passes: tuple[Check, ...]
    operators: tuple[OperatorCheck, ...]
    whole: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed; what was inconclusive did not."""
        return not self.failures()

    def of(self, operator: str) -> tuple[Check, ...]:
        """Return the checks of one operator."""
        return tuple(each.check for each in self.operators if each.name == operator)

    def failures(self) -> list[str]:
        """Return what failed, in words."""
        passes = [f"{c.name}: {c.detail}" for c in self.passes if c.failed]
        alone = [f"{o.name}: {o.check.detail}" for o in self.operators if o.check.failed]
        return passes + alone + [f"{c.name}: {c.detail}" for c in self.whole if c.failed]


def with_checks(
    book: EvidenceBook, bundle: PlanBundle, proof: PassProof, device: Device, progress: Progress
) -> EvidenceBook:
    """Return the evidence of a plan with that of its checks, executed on a device.

    Raises:
        VerificationError: A check failed.
    """
    outcome = verify(bundle, proof, device, progress)
    require_passed(outcome)
    names = (step.operator.name for step in bundle.plan.steps)
    steps = zip(book.steps, names, strict=True)
    return replace(
        book,
        steps=tuple(replace(evidence, checks=outcome.of(name)) for evidence, name in steps),
        checks=(*outcome.passes, *outcome.whole),
        check_mode=proof.scope.mode,
        checked_on=device.name,
    )


def require_passed(outcome: Verification) -> None:
    """Raise if a check failed.

    Raises:
        VerificationError: Naming the first failures.
    """
    failures = outcome.failures()
    if failures:
        more = f" (and {len(failures) - 3} more)" if len(failures) > 3 else ""
        raise VerificationError(
            f"the numbers disagree: {' | '.join(failures[:3])}{more}",
            fix="verify against the model that the plan was made from; if it is, this is a bug",
        )


def verify(
    bundle: PlanBundle, proof: PassProof, device: Device, progress: Progress
) -> Verification:
    """Execute a plan's kernels and compare with the model.

    Args:
        bundle: The plan.
        proof: The proof of the passes, with the model lowered with the plan's options, and on what to check.
        device: Executes the kernels.
        progress: Told of every step.

    Raises:
        WrongModelError: The plan's operators are not the model's.
        EngineError: ONNX Runtime is missing, or given inputs do not fit the plan.
    """
    plan, lowered, scope = bundle.plan, proof.lowered, proof.scope
    require_same_operators(plan, lowered.program)
    require_inputs(scope.given, plan.inputs)
    operators: list[OperatorCheck] = []
    whole: list[Check] = []
    require_onnxruntime()  # not in the thread: an interrupted import would leave it waiting for ever
    with ThreadPoolExecutor(1, "wpk-reference") as beside:  # computes while operators are checked
        witness = Witness(beside, lowered.source.path, lowered.original)
        alone = GraphReference(lowered.graph, plan.precision)
        with Engine(bundle, device) as engine:
            drawing = any(draws(node.proto) for node in lowered.original.nodes)
            together = _EngineCheck(bundle, alone, engine, scope.tolerance, progress, drawing)
            for each, unrounded in zip(proof.rounds, proof.unrounded, strict=True):
                testimony = witness.asked(plan, each)
                memory: dict[str, Array] = {}
                sample = each.samples[0].arrays
                executes = device, engine.host_steps
                try:
                    for checked in check_operators(
                        bundle, alone, sample, each.dims, *executes, memory, progress
                    ):
                        operators.append(checked)
                except EvaluationError as error:  # nobody knows what the others are given
                    name = f"operators alone, {each.samples[0].name}"
                    whole.append(Check(name, Outcome.INCONCLUSIVE, error.what))
                rounded = {
                    name: output_error(some.like(memory[name]), some.array)
                    for name, some in unrounded.items()
                    if name in memory
                }
                right = not any(operator.check.failed for operator in operators)
                whole += together.of(each, testimony, rounded, closer=right)
    let_go()
    return Verification(proof.checks, tuple(operators), tuple(whole))


@dataclass(frozen=True)
class _EngineCheck:
    """Compares a whole engine with ONNX Runtime, and where that says nothing with its own operators."""

    bundle: PlanBundle
    reference: GraphReference
    engine: Engine
    tolerance: Tolerance | None
    progress: Progress
    drawing: bool

    def of(
        self,
        samples: SampleRound,
        testimony: Testimony,
        rounded: Mapping[str, OutputDistance],
        *,
        closer: bool,
    ) -> list[Check]:
        """Return the checks on the samples of a round; what is wrong needs no closer look."""
        if self.drawing:
            words = "the model draws random numbers, so that no two runs are alike"
            name = f"ONNX Runtime, {samples.samples[0].name}"
            return [Check(name, Outcome.INCONCLUSIVE, words)]
        checks = testimony.checks(
            self.engine.run, self.progress, rounded, tolerance=self.tolerance, closer=closer
        )
        found = list(checks)
        in_doubt = [check.outcome is Outcome.INCONCLUSIVE for check in found]
        if any(in_doubt) and executes_all(self.bundle, self.engine):
            sample = samples.samples[in_doubt.index(True)]
            told = (self.reference, self.engine, sample, samples.dims, self.progress)
            found.append(check_in_turn(self.bundle, *told))
        return found


def require_same_operators(plan: Plan, program: Program) -> None:
    """Compare the plan's operators with those that the model lowers to.

    Raises:
        WrongModelError: They differ; names the first one.
    """
    ours = [(step.operator.name, step.operator) for step in plan.steps]
    theirs = [(operator.name, operator) for operator in program.operators]
    for (name, mine), (other, its) in zip(ours, theirs, strict=False):
        if mine != its:
            what = "another problem" if name == other else f"operator '{other}' there"
            raise _other_model(f"operator '{name}' of the plan has {what} in the model")
    if len(ours) != len(theirs):
        raise _other_model(f"it has {len(ours)} operators, the model has {len(theirs)}")


def _other_model(what: str) -> WrongModelError:
    return WrongModelError(
        f"the plan was not made from this model: {what}",
        fix="give the model that the plan was made from, or optimize this one",
    )
