"""Whether what executes the bodies of control flow takes and gives what the node does."""

from collections.abc import Sequence

import onnx

from wpk.closed_models import element_type_of
from wpk.control_flow.reading import sized_by_bodies
from wpk.control_flow.types import Body, NotDrivenError, has_shape, known_shape
from wpk.dims import DimExpr
from wpk.dtypes import DType
from wpk.problems import Fallback

Ports = Sequence[tuple[str, DType | None, tuple[DimExpr, ...]]]
"""Names, types and shapes of inputs or outputs."""

_Port = tuple[str, DType | None, tuple[DimExpr, ...] | None]


def require_driven(problem: Fallback, model: onnx.ModelProto) -> None:
    """Check that what goes in and out of a node lies in the device's memory, whole.

    Only what a Loop collects, and what an If gives, may have a shape that a run decides.

    Args:
        problem: The node, on the device.
        model: The node.

    Raises:
        NotDrivenError: Something does not; names it.
    """
    graph = model.graph
    by_bodies = sized_by_bodies(graph.node[0]) if graph.node else set()
    for info in graph.output[len(problem.results) :]:
        if info.name not in by_bodies or has_shape(info):
            raise NotDrivenError(f"only a run decides the shape of '{info.name}'")
    ports = (*graph.input, *graph.output[: len(problem.results)])
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
        wanted = list(map(_port, infos))
        if len(wanted) != len(seen) or not all(map(_fits, wanted, seen)):
            differs = [each for each in seen if each not in wanted] or list(seen)
            raise NotDrivenError(
                f"a body has the {what} {differs[:3]}, where the node has {wanted[:3]}"
            )


def _fits(wanted: _Port, seen: _Port) -> bool:
    return wanted[:2] == seen[:2] and (wanted[2] is None or wanted[2] == seen[2])


def _port(info: onnx.ValueInfoProto) -> _Port:
    dtype = element_type_of(info.type.tensor_type.elem_type)
    return info.name, dtype, known_shape(info) if has_shape(info) else None
