"""The bodies of control flow that no pass takes away: they are lowered as models of their own."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import onnx
from onnx.shape_inference import infer_shapes

from wpk.control_flow import (
    MAX_DEPTH,
    Body,
    NotDrivenError,
    Size,
    known_shape,
    read_control_flow,
    require_driven,
    require_ports,
)
from wpk.control_flow import OPERATORS as CONTROL_FLOW
from wpk.errors import UnsupportedError, WpkError
from wpk.lowering.lowered_model import BodyFolder, LoweredModel, Source
from wpk.lowering.program import Program
from wpk.model_checks import MAX_ELEMENTS
from wpk.problems import Fallback

LowerBody = Callable[[Path, Source, int], LoweredModel]
"""Lowers a body: a file, how it is lowered, and in how many nodes it lies."""


def with_bodies(
    lowered: LoweredModel, lower_body: LowerBody, depth: int, *, fallback: bool
) -> LoweredModel:
    """Lower the bodies of a model's control flow, too; what stays with ONNX Runtime says why.

    Args:
        lowered: The model.
        lower_body: Lowers a body.
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
            bodies[digest] = _lower_bodies(problem, lowered, folder.path, lower_body, depth)
        except NotDrivenError as reason:
            refused[digest] = str(reason)
        except WpkError as error:
            what = " ".join(error.what.split())
            for path in folder.path.iterdir():
                what = what.replace(str(path), "a body")
            refused[digest] = f"its bodies cannot be engines: {what}"
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
    problem: Fallback, lowered: LoweredModel, folder: Path, lower_body: LowerBody, depth: int
) -> tuple[LoweredModel, ...]:
    """Lower the bodies of the model of one node.

    Raises:
        NotDrivenError: It is no control flow, or none whose bodies wpk drives.
        WpkError: A body cannot be lowered.
    """
    program, source = lowered.program, lowered.source
    model = onnx.load_model_from_string(program.models[problem.model])
    require_driven(problem, model)
    control = read_control_flow(model, problem.input_types)
    if depth == MAX_DEPTH:
        raise NotDrivenError(f"it lies within more than {MAX_DEPTH} others")
    made = []
    for number, body in enumerate(control.bodies):
        path = folder / f"{problem.model[:16]}_{number}.onnx"
        typed = infer_shapes(body.model)  # of outputs, whose shapes the body decides
        path.write_bytes(typed.SerializeToString(deterministic=True))
        within = replace(source, path=path, shapes=_shapes(body, program))
        made.append(lower_body(path, within, depth + 1))
    for body, each in zip(control.bodies, made, strict=True):
        if each.program.kept_outputs:
            raise NotDrivenError("what a body computes decides the shape of what it gives")
        require_ports(body, each.program.ports)
        _require_sizes(program, each.program)
    if not any(each.has_kernels for each in made):
        raise NotDrivenError("nothing in its bodies has a kernel")
    return tuple(made)


def _shapes(body: Body, program: Program) -> dict[str, list[list[int]]]:
    """Shapes of a body's inputs that have free dimensions: the sizes of these around it, as ``--shapes`` has them."""
    shapes = {each.name: known_shape(each) for each in body.model.graph.input}
    free = {n: s for n, s in shapes.items() if not all(isinstance(size, int) for size in s)}
    return {
        name: [list(each) for each in zip(*(_range(size, program) for size in shape), strict=True)]
        for name, shape in free.items()
    }


def _range(size: Size, program: Program) -> tuple[int, int, int]:
    """The smallest, the tuned and the largest size of an axis; -1 where there are no limits."""
    if isinstance(size, int):
        return size, size, size
    if size not in program.limits:
        return -1, -1, -1
    smallest, largest = program.limits[size]
    return smallest, program.free[size], largest


def _require_sizes(program: Program, body: Program) -> None:
    """Check that a body takes every size of the free dimensions that the model around it does."""
    for name, (smallest, largest) in body.limits.items():
        least, most = program.limits.get(name, (1, MAX_ELEMENTS))
        if least < smallest or most > largest:
            raise NotDrivenError(f"a body takes sizes of '{name}' from {smallest} to {largest}")
