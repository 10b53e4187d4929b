"""Read the closed model of one If, Loop or Scan: its bodies become models of their own."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto

from wpk.control_flow.body_models import body_model, read_names, renamed, typed
from wpk.control_flow.endless import may_end
from wpk.control_flow.surroundings import Surroundings
from wpk.control_flow.types import (
    OPERATORS,
    Collected,
    Conditional,
    ControlFlow,
    NotDrivenError,
    Size,
    Sliced,
    Turns,
)
from wpk.dtypes import DType

_OF_LOOP = 2
"""Inputs of a Loop, and of its body, in front of the states."""


def read_control_flow(model: onnx.ModelProto, types: Sequence[DType]) -> ControlFlow:
    """Read the model of one node.

    Args:
        model: The node.
        types: Types that the model's inputs have in memory. A body takes what it reads from outside in
            these, and converts it.

    Raises:
        NotDrivenError: It is none of an If, a Loop or a Scan, or one that is not carried.
    """
    nodes = model.graph.node
    if len(nodes) != 1 or nodes[0].op_type not in OPERATORS:
        names = ", ".join(node.op_type for node in nodes[:4])
        raise NotDrivenError(f"{names or 'nothing'} is not one If, Loop or Scan")
    reading = _Reading(Surroundings(model, types))
    match nodes[0].op_type:
        case "If":
            return reading.conditional()
        case "Loop":
            return reading.loop()
        case _:
            return reading.scan()


def sized_by_bodies(node: onnx.NodeProto) -> set[str]:
    """Outputs of an If, a Loop or a Scan that may have a shape which only a run decides."""
    if node.op_type == "Loop":
        return set(node.output[max(0, len(node.input) - _OF_LOOP) :])
    return set(node.output) if node.op_type == "If" else set()


class _Reading:
    """A node and what surrounds it."""

    def __init__(self, around: Surroundings) -> None:
        self._around, self._node = around, around.node
        self._attributes = {each.name: each for each in self._node.attribute}

    def conditional(self) -> Conditional:
        around, node = self._around, self._node
        condition = around.deciding(node.input[0], TensorProto.BOOL)
        places = [list(node.output).index(name) for name in around.results]
        infos = [around.info(name) for name in around.results]
        made = [
            body_model(around, self._attributes[name].g, [], places, infos)
            for name in ("then_branch", "else_branch")
        ]
        return Conditional(condition, (made[0], made[1]))

    def loop(self) -> Turns:
        around, node, graph = self._around, self._node, self._attributes["body"].g
        given = [*node.input, "", ""]
        states = list(node.input[_OF_LOOP:])
        if len(graph.input) != _OF_LOOP + len(states):
            raise NotDrivenError("its body takes another number of values than it is given")
        results, used = self._used(states)
        within = self._typed_states(graph.input[_OF_LOOP:], states)
        number, condition, held = (
            typed(info, code, _own_shape(info))
            for info, code in (
                (graph.input[0], TensorProto.INT64),
                (graph.input[1], TensorProto.BOOL),
                (graph.output[0], TensorProto.BOOL),
            )
        )
        places = [0, *(1 + state for state in range(len(states)))]
        places += [1 + len(states) + each for each in used]
        names = [node.output[len(states) + each] for each in used]
        infos = [held, *within, *map(around.part, names)]
        count, begins = (
            around.deciding(name, code) if name else None
            for name, code in zip(given, (TensorProto.INT64, TensorProto.BOOL), strict=False)
        )
        return Turns(
            count,
            begins,
            True,
            may_end(graph, around.constants),
            graph.input[0].name in read_names(graph),
            tuple(map(around.source, states)),
            (),
            tuple(Collected(around.places(name), backwards=False) for name in names),
            results,
            (body_model(around, graph, [number, condition, *within], places, infos),),
        )

    def scan(self) -> Turns:
        around, node, graph = self._around, self._node, self._attributes["body"].g
        cut = self._attributes["num_scan_inputs"].i
        states, sliced = list(node.input[: len(node.input) - cut]), node.input[-cut:]
        results, used = self._used(states)
        outputs = len(node.output) - len(states)
        self._require_first_axis("scan_input_axes", cut)
        self._require_first_axis("scan_output_axes", outputs)
        turned = self._integers("scan_input_directions", cut)
        collected = self._integers("scan_output_directions", outputs)
        within = self._typed_states(graph.input[: len(states)], states)
        parts = [
            renamed(around.part(name), own.name)
            for name, own in zip(sliced, graph.input[len(states) :], strict=True)
        ]
        places = [*range(len(states)), *(len(states) + number for number in used)]
        names = [node.output[len(states) + number] for number in used]
        infos = [*within, *map(around.part, names)]
        (count,) = self._one_length([*sliced, *names])
        return Turns(
            count if isinstance(count, str) else np.asarray(count, np.int64),
            None,
            False,
            False,
            False,
            tuple(map(around.source, states)),
            tuple(
                Sliced(around.source(name), bool(way))
                for name, way in zip(sliced, turned, strict=True)
            ),
            tuple(Collected(count, bool(collected[number])) for number in used),
            results,
            (body_model(around, graph, [*within, *parts], places, infos),),
        )

    def _used(self, states: Sequence[str]) -> tuple[tuple[int, ...], list[int]]:
        """What each result is, and which outputs behind the states somebody reads."""
        around, count = self._around, len(states)
        places = [list(self._node.output).index(name) for name in around.results]
        for name, place in zip(around.results, places, strict=True):
            if place < count and around.shape_of(name) != around.shape_of(states[place]):
                raise NotDrivenError(f"the shape of its state '{name}' changes")
        used = sorted({place - count for place in places if place >= count})
        results = tuple(p if p < count else count + used.index(p - count) for p in places)
        return results, used

    def _typed_states(
        self, own: Sequence[onnx.ValueInfoProto], states: Sequence[str]
    ) -> list[onnx.ValueInfoProto]:
        """The body's inputs of states, typed as what the states are at first: they keep type and shape."""
        return [
            typed(info, self._around.type_of(name), self._around.shape_of(name))
            for info, name in zip(own, states, strict=True)
        ]

    def _one_length(self, names: Sequence[str]) -> set[Size]:
        """The length along the first axis that all of them have."""
        lengths = {self._around.shape_of(name)[0] for name in names}
        if len(lengths) != 1:
            raise NotDrivenError(f"what it slices and gives has {sorted(map(str, lengths))} parts")
        return lengths

    def _integers(self, attribute: str, count: int) -> list[int]:
        found = self._attributes.get(attribute)
        return [0] * count if found is None else list(found.ints)

    def _require_first_axis(self, attribute: str, count: int) -> None:
        if any(self._integers(attribute, count)):
            raise NotDrivenError("it cuts tensors along another axis than the first")


def _own_shape(info: onnx.ValueInfoProto) -> tuple[int, ...]:
    """The shape of a number or condition of a body: () where the body does not say."""
    return tuple(1 for _ in info.type.tensor_type.shape.dim)
