"""What must hold within a plan before anything of it is executed."""

import re
from collections.abc import Mapping

from wpk.dims import evaluate
from wpk.errors import EngineError
from wpk.extent import MAX_SIZE
from wpk.plan.checks.choices import check_candidate
from wpk.plan.checks.flow import check_flow
from wpk.plan.checks.measurements import check_measurements
from wpk.plan.checks.operands import check_operands
from wpk.plan.checks.problems import check_problem
from wpk.plan.checks.sized_plan import SizedPlan
from wpk.plan.checks.values import check_values
from wpk.plan.checks.work import check_work
from wpk.plan.fields import MAX_BYTES, at, unique, within, wrong
from wpk.plan.plan import Plan
from wpk.plan.ports import Port

_DIGEST = re.compile(r"[0-9a-f]{64}")
_ARCH = re.compile(r"sm_\d+[af]?")


def check_plan(plan: Plan) -> None:
    """Check names, references, problems, and all that depends on sizes at the tuned ones.

    Raises:
        PlanError: Naming the field.
    """
    if _ARCH.fullmatch(plan.arch) is None:
        raise wrong("plan.arch", f"{plan.arch!r} is no architecture")
    for name, size in plan.free.items():
        within(f"plan.free.{name}", size, 1, MAX_SIZE)
    for name, (smallest, largest) in plan.limits.items():
        if name not in plan.free:
            raise wrong(f"plan.limits.{name}", "no free dimension is called so")
        within(f"plan.limits.{name}", largest, plan.free[name], MAX_SIZE)
        within(f"plan.limits.{name}", smallest, 1, plan.free[name])
    _check_names(plan)
    check_measurements(plan)
    for index, step in enumerate(plan.steps):
        field = f"plan.steps[{index}].operator.problem"
        check_problem(step.operator.problem, plan.free, field)
    check_sizes(plan, plan.free)


def check_sizes(plan: Plan, dims: Mapping[str, int]) -> None:
    """Check everything that depends on the free dimensions, for one assignment of them.

    Args:
        plan: That passed `check_plan`, or is being checked by it.
        dims: Values of all free dimensions.

    Raises:
        PlanError: Naming the field.
    """
    for name, (smallest, largest) in plan.limits.items():
        within(f"plan.free.{name}", dims[name], smallest, largest)
    try:
        for name, buffer in plan.buffers.items():
            within(f"plan.buffers.{name}.bytes", evaluate(buffer.bytes, dims), 0, MAX_BYTES)
        sized = SizedPlan(plan, dims, check_values(plan, dims))
        touches = []
        for index, step in enumerate(plan.steps):
            field = f"plan.steps[{index}]"
            touches.append(check_operands(sized, step, field))
            check_work(step.operator.problem, dims, f"{field}.operator.problem")
            check_candidate(sized, step, field)
        check_flow(sized, touches)
    except EngineError as error:
        raise wrong("plan", error.what) from error


def _check_names(plan: Plan) -> None:
    for section in ("values", "buffers", "weights"):
        for name, entry in getattr(plan, section).items():
            if entry.name != name:
                raise wrong(f"plan.{section}.{name}.name", f"is {entry.name!r}")
    both = sorted(set(plan.values) & set(plan.weights))
    if both:
        raise wrong(f"plan.weights.{both[0]}", "a value has the same name")
    for name, weight in plan.weights.items():
        _digest(f"plan.weights.{name}.digest", weight.digest)
    for digest, kernel in plan.kernels.items():
        path = f"plan.kernels.{digest[:12]}"
        _digest(path, digest)
        if kernel.digest != digest:
            raise wrong(f"{path}.digest", f"is {kernel.digest[:12]!r}")
    unique("plan.steps", (step.operator.name for step in plan.steps))
    for section, ports in (("inputs", plan.inputs), ("outputs", plan.outputs)):
        if section == "outputs" and not (ports or plan.kept_outputs):
            raise wrong(f"plan.{section}", "is empty")
        unique(f"plan.{section}", (port.name for port in ports))
        for index, port in enumerate(ports):
            _check_port(plan, port, f"plan.{section}[{index}]")
    kept = [each.name for each in plan.kept_outputs]
    unique("plan.outputs", [*(port.name for port in plan.outputs), *kept])
    decided = {size for port in plan.inputs for size in port.shape}
    for name in plan.free:
        if name not in decided:
            raise wrong(f"plan.free.{name}", "no input decides it")


def _check_port(plan: Plan, port: Port, path: str) -> None:
    if port.name not in plan.values:
        raise wrong(f"{path}.name", f"no value is called {port.name!r}")
    value = plan.values[port.name]
    if value.dtype is not port.dtype:
        raise wrong(f"{path}.dtype", f"{port.dtype}, its value has {value.dtype}")
    sizes = tuple(at(f"{path}.shape", size, plan.free) for size in port.shape)
    if port.shape != value.logical_shape:
        raise wrong(f"{path}.shape", f"{sizes}, its value has {value.logical_shape}")


def _digest(path: str, digest: str) -> None:
    if _DIGEST.fullmatch(digest) is None:
        raise wrong(path, f"{digest[:70]!r} is no SHA-256")
