"""Whether the models of a plan, which ONNX Runtime executes, are closed and what their steps say of them."""

from collections.abc import Sequence

import onnx

from wpk.closed_models import ClosedModel, ClosedModelError, ModelPort, read_closed_model
from wpk.control_flow import NotDrivenError, read_control_flow, require_driven, require_ports
from wpk.dtypes import DType
from wpk.plan.control import CONTROL
from wpk.plan.fields import wrong
from wpk.plan.plan import PlanBundle, Step
from wpk.problems import Crossing, Fallback

_CONVERTED = {DType.FP16: DType.FP32, DType.BF16: DType.FP32}
"""Types in memory that may be given to a model, and taken from it, in another type."""


def check_models(bundle: PlanBundle) -> None:
    """Check every model once, and every step that executes one.

    Args:
        bundle: A plan that is right in itself, with the models that it names.

    Raises:
        PlanError: Naming the member, or the field.
    """
    known: dict[str, ClosedModel] = {}
    for digest, data in bundle.models.items():
        try:
            known[digest] = read_closed_model(data)
        except ClosedModelError as error:
            raise wrong(f"models/{digest[:12]}", f"it {error}") from error
    for index, step in enumerate(bundle.plan.steps):
        if step.fallback is not None:
            path = f"plan.steps[{index}].operator"
            _check_step(step, step.fallback, known[step.fallback.model], path)
            if step.bodies:
                _check_bodies(bundle, step, step.fallback, f"plan.steps[{index}]")


def _check_bodies(bundle: PlanBundle, step: Step, problem: Fallback, path: str) -> None:
    """Check that the engines of a step are those that its control flow asks for."""
    if step.candidate != CONTROL:
        seen = f"{step.candidate.maker.title} {step.candidate.configuration}"
        raise wrong(f"{path}.candidate", f"{seen[:80]}, installed is {CONTROL.maker.title}")
    model = onnx.load_model_from_string(bundle.models[problem.model])
    plans = [bundle.bodies[digest].plan for digest in step.bodies]
    for plan in plans:
        if (plan.target, plan.arch, plan.precision) != (
            bundle.plan.target,
            bundle.plan.arch,
            bundle.plan.precision,
        ):
            raise wrong(f"{path}.bodies", f"are for {plan.target}, {plan.arch}, {plan.precision}")
    try:
        require_driven(problem, model)
        control = read_control_flow(model, problem.input_types)
        if len(control.bodies) != len(plans):
            raise NotDrivenError(f"{len(plans)} bodies, the node has {len(control.bodies)}")
        for body, plan in zip(control.bodies, plans, strict=True):
            if plan.kept_outputs or not plan.free.items() <= bundle.plan.free.items():
                raise NotDrivenError("a body has shapes that a run decides")
            sides = [[(p.name, p.dtype, p.shape) for p in s] for s in (plan.inputs, plan.outputs)]
            require_ports(body, (sides[0], sides[1]))
    except (NotDrivenError, KeyError, IndexError, ValueError) as error:
        raise wrong(f"{path}.bodies", f"{error}") from error


def _check_step(step: Step, problem: Fallback, model: ClosedModel, path: str) -> None:
    if problem.operators != model.operators:
        raise wrong(f"{path}.problem.operators", "are not those of the model")
    _check_ports(problem.x, model.inputs, f"{path}.problem.x")
    results = model.outputs[: len(problem.results)]
    _check_ports(problem.results, results, f"{path}.problem.results")
    if len(step.operator.outputs) != len(model.outputs):
        count = len(model.outputs)
        raise wrong(f"{path}.outputs", f"{len(step.operator.outputs)} names, the model has {count}")
    for port in model.outputs[len(problem.results) :]:
        if port.dtype is None:
            raise wrong(f"{path}.outputs", f"'{port.name}' has a type that no engine gives")


def _check_ports(
    crossings: Sequence[Crossing | None], ports: Sequence[ModelPort], path: str
) -> None:
    if len(crossings) != len(ports):
        raise wrong(path, f"{len(crossings)} tensors, the model has {len(ports)}")
    for index, (crossing, port) in enumerate(zip(crossings, ports, strict=True)):
        field = f"{path}[{index}]"
        if crossing is not None:
            _check_crossing(crossing, port, field)
        elif port.dtype is None:
            raise wrong(field, f"'{port.name}' has a type that no engine gives")


def _check_crossing(crossing: Crossing, port: ModelPort, path: str) -> None:
    dtype = crossing.access.tensor.dtype
    if port.dtype not in (dtype, _CONVERTED.get(dtype)):
        raise wrong(path, f"is {dtype}, '{port.name}' of the model {port.dtype}")
    if port.shape is None:
        return
    shape = crossing.shape
    fits = len(shape) == len(port.shape) and all(
        known is None or known == extent for known, extent in zip(port.shape, shape, strict=True)
    )
    if not fits:
        raise wrong(path, f"has shape {shape}, '{port.name}' of the model {port.shape}")
