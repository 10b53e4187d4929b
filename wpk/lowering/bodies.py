"""The bodies of control flow that no pass takes away: they are lowered as models of their own."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import onnx

from wpk.control_flow import (
    MAX_DEPTH,
    NotDrivenError,
    read_control_flow,
    require_driven,
    require_ports,
)
from wpk.control_flow import OPERATORS as CONTROL_FLOW
from wpk.errors import UnsupportedError, WpkError
from wpk.lowering.lowered_model import BodyFolder, LoweredModel, Source
from wpk.problems import Fallback

LowerBody = Callable[[Path, Source, int], LoweredModel]


def with_bodies(
    lowered: LoweredModel, lower_body: LowerBody, depth: int, *, fallback: bool
) -> LoweredModel:
    """Lower the bodies of a model's control flow, too; what stays with ONNX Runtime says why.

    Args:
        lowered: The model.
        lower_body: Lowers a body: a file, what the model was lowered from, and in how many nodes it lies.
        depth: In how many nodes the model is a body.
        fallback: Whether ONNX Runtime executes what has no engine.

    Raises:
        UnsupportedError: It does not, and there are no engines; all such nodes are listed.
    """
    bodies: dict[str, tuple[LoweredModel, ...]] = {}
    refused: dict[str, str] = {}
    folder = BodyFolder()
    problems = [each.problem for each in lowered.program.operators]
    for problem in (each for each in problems if isinstance(each, Fallback)):
        digest = problem.model
        try:
            bodies[digest] = _lower_bodies(
                problem,
                lowered.program.models[digest],
                folder.path,
                lowered.source,
                lower_body,
                depth,
            )
        except NotDrivenError as reason:
            refused[digest] = str(reason)
        except WpkError as error:
            refused[digest] = f"its bodies cannot be engines: {' '.join(error.what.split())}"
    if refused and not fallback:
        _refuse(lowered, refused)
    operators = tuple(
        replace(each, note=f"{each.note}; {refused[each.problem.model]}")
        if isinstance(each.problem, Fallback)
        and each.problem.model in refused
        and any(name in CONTROL_FLOW for name in each.problem.operators)
        else each
        for each in lowered.program.operators
    )
    program = replace(lowered.program, operators=operators)
    return replace(lowered, program=program, bodies=bodies, folder=folder if bodies else None)


def _refuse(lowered: LoweredModel, refused: Mapping[str, str]) -> NoReturn:
    """Raise for control flow without engines."""
    rows = [
        f"  {', '.join(each.nodes)}  {each.problem.operators[0]}  {each.note}; {refused[each.problem.model]}"
        for each in lowered.program.operators
        if isinstance(each.problem, Fallback) and each.problem.model in refused
    ]
    raise UnsupportedError(
        "\n".join([f"{len(rows)} nodes are not supported (node, operator, why):", *rows]),
        fix="replace these operators before exporting, or let ONNX Runtime execute them: --fallback on",
    )


def _lower_bodies(
    problem: Fallback,
    data: bytes,
    folder: Path,
    source: Source,
    lower_body: LowerBody,
    depth: int,
) -> tuple[LoweredModel, ...]:
    """Lower the bodies of the model of one node.

    Raises:
        NotDrivenError: It is no control flow, or none whose bodies wpk drives.
        WpkError: A body cannot be lowered.
    """
    model = onnx.load_model_from_string(data)
    require_driven(problem, model)
    control = read_control_flow(model, problem.input_types)
    if depth == MAX_DEPTH:
        raise NotDrivenError(f"it lies within more than {MAX_DEPTH} others")
    made = []
    for number, body in enumerate(control.bodies):
        path = folder / f"{problem.model[:16]}_{number}.onnx"
        path.write_bytes(body.model.SerializeToString(deterministic=True))
        made.append(lower_body(path, source, depth + 1))
    for body, lowered in zip(control.bodies, made, strict=True):
        require_ports(body, lowered.program.ports)
    if not any(each.has_kernels for each in made):
        raise NotDrivenError("nothing in its bodies has a kernel")
    return tuple(made)
