"""``wpk.verify``: a plan against the model that it was made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.backends import open_device
from wpk.checks import (
    QUICK_SEEDS,
    SEEDS,
    Scope,
    Tolerance,
    Verification,
    prove_passes,
    require_inputs,
    require_passed,
)
from wpk.checks import verify_with_bodies as verify_bundle
from wpk.engine import Likeness, MachineCode, compare_machine_code, require_executable, require_same
from wpk.errors import EngineError
from wpk.lowering.model import lower_model
from wpk.model_source import Model, model_file
from wpk.plan import CheckMode, Paths, PlanBundle, bundle_of
from wpk.progress import Progress
from wpk.report import shown
from wpk.targets import features_of


@dataclass(frozen=True)
class Verified:
    """What comparing a plan with its model has found.

    Attributes:
        machine_code: The plan's machine code beside what its sources give here.
        checks: The graph passes, every operator alone, and the whole engine.
    """

    machine_code: MachineCode
    checks: Verification

    @property
    def passed(self) -> bool:
        """Whether nothing was found wrong; what was inconclusive or not comparable is not."""
        return self.checks.passed and self.machine_code.likeness is not Likeness.DIFFERS

    def require(self) -> None:
        """Raise if something was found wrong.

        Raises:
            VerificationError: Names it.
        """
        require_passed(self.checks)
        require_same(self.machine_code)

    def __repr__(self) -> str:
        """The counts, not the checks."""
        counts = [len(self.checks.passes), len(self.checks.operators), len(self.checks.whole)]
        return (
            f"<Verified: {'right' if self.passed else 'WRONG'}: {counts[0]} checks of graph passes, "
            f"{counts[1]} of operators alone, {counts[2]} of the whole engine; {self.machine_code}>"
        )


def verify(
    plan: Paths | PlanBundle,
    model: Model,
    *,
    device: str = "auto",
    check: CheckMode | str = CheckMode.ON,
    seeds: int | None = None,
    inputs: Sequence[Mapping[str, NDArray[np.generic]]] = (),
    rtol: float | None = None,
    atol: float | None = None,
    trust: bool = False,
    progress: Progress | None = None,
) -> Verified:
    """Compare a plan with the model that it was made from.

    Args:
        plan: The plan file, or what `wpk.optimize` returned.
        model: The ONNX file, `onnx.ModelProto` or bytes.
        device: Executes the kernels: ``gpu``, ``cpu``, or ``auto``.
        check: ``on``, or ``quick``: at the tuned sizes and on one drawn input only.
        seeds: Drawn inputs for the whole engine; 3 by default, 1 with ``quick``.
        inputs: Inputs of the model, arrays by name, to check on beside drawn ones.
        rtol: With ``atol``: holds outputs of the whole engine to ``|y - expected| <= atol + rtol
            |expected|``, in place of the limits of the precision.
        atol: See there; what is not given of the two is 0.
        trust: Whether a GPU executes machine code that cannot be compared.
        progress: Told of every stage; by default a line on a terminal's stderr.

    Returns:
        All checks; none has failed.

    Raises:
        VerificationError: The numbers disagree, or the machine code is not that of the sources.
        WpkError: It cannot be verified: another model's plan, inputs that do not fit, no such device.
    """
    found = compare(
        plan,
        model,
        scope_asked(check, seeds, inputs, rtol, atol),
        device=device,
        trust=trust,
        progress=shown(progress),
    )
    found.require()
    return found


def compare(
    plan: Paths | PlanBundle,
    model: Model,
    scope: Scope,
    *,
    device: str,
    trust: bool,
    progress: Progress,
) -> Verified:
    """Do as `verify` does, and return also what was found wrong."""
    bundle = bundle_of(plan)
    require_inputs(scope.given, bundle.plan.inputs)
    made = bundle.plan.provenance
    with model_file(model, ()) as path:
        lowered = lower_model(
            path,
            made.shapes,
            bundle.plan.precision,
            made.skipped_passes,
            progress,
            changed=made.changed_sites,
            fallback=made.fallback,
            driven=True,
            features=features_of(bundle.plan.arch),
        )
        proof = prove_passes(lowered, scope, progress)
        code = compare_machine_code(bundle, progress)
        with open_device(device) as opened:
            if not opened.executes_source and not trust:
                require_executable(code)
            return Verified(code, verify_bundle(bundle, proof, opened, progress))


def scope_asked(
    check: CheckMode | str,
    seeds: int | None,
    inputs: Sequence[Mapping[str, NDArray[np.generic]]],
    rtol: float | None,
    atol: float | None,
) -> Scope:
    """The scope of the checks that the arguments of `verify` ask for.

    Raises:
        EngineError: They are out of range.
    """
    if check not in (CheckMode.ON, CheckMode.QUICK):
        raise EngineError(
            f"check is {check!r}, expected 'on' or 'quick'", fix="choose one of these"
        )
    if seeds is not None and seeds < 1:
        raise EngineError(f"seeds is {seeds}", fix="give a number from 1 up")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value is not None and not 0.0 <= value < float("inf"):
            raise EngineError(f"{name} is {value}", fix="give a number from 0 up")
    quick = check == CheckMode.QUICK
    return Scope(
        quick=quick,
        seeds=seeds or (QUICK_SEEDS if quick else SEEDS),
        given=inputs,
        tolerance=None if rtol is None and atol is None else Tolerance(rtol or 0.0, atol or 0.0),
    )
