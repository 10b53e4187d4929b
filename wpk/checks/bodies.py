"""Plans whose control flow has engines of its own: these are checked as every plan is, one after another."""

from collections.abc import Iterator
from dataclasses import replace

from wpk.checks.pass_proof import PassProof, prove_passes
from wpk.checks.scope import Scope
from wpk.checks.verification import Verification, verify
from wpk.execution import Device
from wpk.lowering.lowered_model import LoweredModel
from wpk.plan import PlanBundle
from wpk.progress import Progress


def scope_of_bodies(scope: Scope) -> Scope:
    """The scope for bodies: what a person gives and allows is for the model as a whole."""
    return replace(scope, given=(), tolerance=None)


def verify_with_bodies(
    bundle: PlanBundle, proof: PassProof, device: Device, progress: Progress
) -> Verification:
    """Do as `verify` does, with the plan and with those of its bodies.

    Raises:
        WrongModelError: The operators of a plan are not the model's.
        EngineError: ONNX Runtime is missing, or given inputs do not fit the plan.
    """
    found = verify(bundle, proof, device, progress)
    for name, body, lowered in _bodies(bundle, proof.lowered):
        within = prove_passes(lowered, scope_of_bodies(proof.scope), progress)
        inner = verify_with_bodies(body, within, device, progress)
        found = Verification(
            (*found.passes, *(replace(c, name=f"{name}, {c.name}") for c in inner.passes)),
            (*found.operators, *(replace(o, name=f"{name}, {o.name}") for o in inner.operators)),
            (*found.whole, *(replace(c, name=f"{name}, {c.name}") for c in inner.whole)),
        )
    return found


def _bodies(
    bundle: PlanBundle, lowered: LoweredModel
) -> Iterator[tuple[str, PlanBundle, LoweredModel]]:
    """The bodies of a plan's steps, each once, with what they were made from."""
    seen: set[str] = set()
    for step in bundle.plan.steps:
        if step.fallback is None or not step.bodies or step.fallback.model in seen:
            continue
        seen.add(step.fallback.model)
        made = lowered.bodies.get(step.fallback.model, ())
        for number, (digest, body) in enumerate(zip(step.bodies, made, strict=True), 1):
            yield f"body {number} of {step.operator.name}", bundle.bodies[digest], body
