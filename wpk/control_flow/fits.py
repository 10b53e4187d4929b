"""Whether what executes the bodies of control flow takes and gives what the node does."""

from collections.abc import Sequence

import onnx

from wpk.closed_models import element_type_of
from wpk.control_flow.types import Body, NotDrivenError, known_shape
from wpk.dims import DimExpr
from wpk.dtypes import DType
from wpk.problems import Fallback

Ports = Sequence[tuple[str, DType | None, tuple[DimExpr, ...]]]
"""Names, types and shapes of inputs or outputs."""


def require_driven(problem: Fallback, model: onnx.ModelProto) -> None:
    """Check that all that goes in and out of a node lies in the device's memory, whole and of a fixed shape.

    Args:
        problem: The node, on the device.
        model: The node.

    Raises:
        NotDrivenError: Something does not; names it.
    """
    graph = model.graph
    if len(problem.results) != len(graph.output):
        raise NotDrivenError("only a run decides the shape of what it gives")
    ports = (*graph.input, *graph.output)
    for crossing, info in zip((*problem.x, *problem.results), ports, strict=True):
        if crossing is None:
            raise NotDrivenError(f"only a run decides the shape of '{info.name}'")
        if crossing.shape != known_shape(info):
            raise NotDrivenError(f"'{info.name}' lies in memory as {crossing.shape}")


def require_ports(body: Body, ports: tuple[Ports, Ports]) -> None:
    """Check that what executes a body takes and gives what the node does.

    Args:
        body: The body.
        ports: Inputs and outputs of what executes it.

    Raises:
        NotDrivenError: Something differs; names it.
    """
    graph = body.model.graph
    for what, infos, seen in (
        ("inputs", graph.input, ports[0]),
        ("outputs", graph.output, ports[1]),
    ):
        wanted = [_port(info) for info in infos]
        if wanted != list(seen):
            differs = [each for each in seen if each not in wanted] or list(seen)
            raise NotDrivenError(
                f"a body has the {what} {differs[:3]}, where the node has {wanted[:3]}"
            )


def _port(info: onnx.ValueInfoProto) -> tuple[str, DType | None, tuple[DimExpr, ...]]:
    return info.name, element_type_of(info.type.tensor_type.elem_type), known_shape(info)
