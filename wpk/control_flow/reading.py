"""Read the closed model of one If, Loop or Scan: its bodies become models of their own."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from wpk.closed_models import subgraphs
from wpk.control_flow.types import (
    OPERATORS,
    Body,
    Conditional,
    ControlFlow,
    NotDrivenError,
    Slices,
    Source,
    Turns,
    known_shape,
)
from wpk.dtypes import DType


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
    reading = _Reading(model, nodes[0], types)
    match nodes[0].op_type:
        case "If":
            return reading.conditional()
        case "Loop":
            return reading.loop()
        case _:
            return reading.scan()


class _Reading:
    """A node and what surrounds it."""

    def __init__(
        self, model: onnx.ModelProto, node: onnx.NodeProto, types: Sequence[DType]
    ) -> None:
        graph = model.graph
        self._types = types
        self._model, self._node = model, node
        self._attributes = {each.name: each for each in node.attribute}
        self._constants = {each.name: each for each in graph.initializer}
        self._numbers = {each.name: number for number, each in enumerate(graph.input)}
        self._infos = {each.name: each for each in (*graph.input, *graph.output)}
        self._results = [each.name for each in graph.output]

    def conditional(self) -> Conditional:
        condition = self._source(self._node.input[0])
        places = [list(self._node.output).index(name) for name in self._results]
        infos = [self._infos[name] for name in self._results]
        made = [
            self._body(self._attributes[name].g, [], places, infos)
            for name in ("then_branch", "else_branch")
        ]
        return Conditional(condition, (made[0], made[1]))

    def loop(self) -> Turns:
        graph, node = self._attributes["body"].g, self._node
        given = [*node.input, "", ""]
        states = list(node.input[2:])
        if len(graph.input) != 2 + len(states):
            raise NotDrivenError("its body takes another number of values than it is given")
        results, used = self._used(len(states))
        inputs = [
            _typed(graph.input[0], TensorProto.INT64, _own_shape(graph.input[0])),
            _typed(graph.input[1], TensorProto.BOOL, _own_shape(graph.input[1])),
            *self._state_inputs(graph.input[2:], states),
        ]
        places = [0, *(1 + state for state in range(len(states)))]
        places += [1 + len(states) + number for number in used]
        infos = [
            _typed(graph.output[0], TensorProto.BOOL, _own_shape(graph.output[0])),
            *self._state_inputs(graph.input[2:], states),
            *(self._part_of(self._node.output[len(states) + number], 0) for number in used),
        ]
        count, condition = (self._source(name) if name else None for name in given[:2])
        return Turns(
            count,
            condition,
            True,
            tuple(map(self._source, states)),
            (),
            tuple(Slices(None, False) for _ in used),
            results,
            (self._body(graph, inputs, places, infos),),
        )

    def scan(self) -> Turns:
        graph, node = self._attributes["body"].g, self._node
        cut = self._attributes["num_scan_inputs"].i
        states, sliced = list(node.input[: len(node.input) - cut]), node.input[-cut:]
        results, used = self._used(len(states))
        outputs = len(node.output) - len(states)
        self._require_first_axis("scan_input_axes", cut)
        self._require_first_axis("scan_output_axes", outputs)
        turned = self._integers("scan_input_directions", cut)
        collected = self._integers("scan_output_directions", outputs)
        inputs = [
            *self._state_inputs(graph.input[: len(states)], states),
            *(
                _renamed(self._part_of(name, 0), own.name)
                for name, own in zip(sliced, graph.input[len(states) :], strict=True)
            ),
        ]
        places = [*range(len(states)), *(len(states) + number for number in used)]
        infos = [
            *self._state_inputs(graph.input[: len(states)], states),
            *(self._part_of(node.output[len(states) + number], 0) for number in used),
        ]
        lengths = {self._shape_of(name)[0] for name in sliced}
        if len(lengths) != 1:
            raise NotDrivenError(f"what it slices has {sorted(lengths)} parts")
        return Turns(
            np.asarray(lengths.pop(), np.int64),
            None,
            False,
            tuple(map(self._source, states)),
            tuple(
                Slices(self._source(name), bool(way))
                for name, way in zip(sliced, turned, strict=True)
            ),
            tuple(Slices(None, bool(collected[number])) for number in used),
            results,
            (self._body(graph, inputs, places, infos),),
        )

    def _used(self, states: int) -> tuple[tuple[int, ...], list[int]]:
        """What each result is, and which outputs behind the states somebody reads."""
        places = [list(self._node.output).index(name) for name in self._results]
        used = sorted({place - states for place in places if place >= states})
        results = tuple(p if p < states else states + used.index(p - states) for p in places)
        return results, used

    def _state_inputs(
        self, own: Sequence[onnx.ValueInfoProto], states: Sequence[str]
    ) -> list[onnx.ValueInfoProto]:
        """The body's inputs of states, typed as what the states are at first: they keep type and shape."""
        return [
            _typed(info, self._type_of(name), self._shape_of(name))
            for info, name in zip(own, states, strict=True)
        ]

    def _part_of(self, name: str, axis: int) -> onnx.ValueInfoProto:
        shape = list(self._shape_of(name))
        if not shape:
            raise NotDrivenError(f"'{name}' has no axis to be cut along")
        del shape[axis]
        return onnx.helper.make_tensor_value_info(name, self._type_of(name), shape)

    def _source(self, name: str) -> Source:
        if name in self._constants:
            return numpy_helper.to_array(self._constants[name])
        if name not in self._numbers:
            raise NotDrivenError(f"it reads {name!r}, which nothing gives")
        return self._numbers[name]

    def _type_of(self, name: str) -> int:
        if name in self._constants:
            return int(self._constants[name].data_type)
        if name not in self._infos:
            raise NotDrivenError(f"it reads {name!r}, which nothing gives")
        return int(self._infos[name].type.tensor_type.elem_type)

    def _shape_of(self, name: str) -> tuple[int, ...]:
        if name in self._constants:
            return tuple(self._constants[name].dims)
        if name not in self._infos:
            raise NotDrivenError(f"it reads {name!r}, which nothing gives")
        return known_shape(self._infos[name])

    def _integers(self, attribute: str, count: int) -> list[int]:
        found = self._attributes.get(attribute)
        return [0] * count if found is None else list(found.ints)

    def _require_first_axis(self, attribute: str, count: int) -> None:
        if any(self._integers(attribute, count)):
            raise NotDrivenError("it cuts tensors along another axis than the first")

    def _body(
        self,
        graph: onnx.GraphProto,
        inputs: Sequence[onnx.ValueInfoProto],
        places: Sequence[int],
        outputs: Sequence[onnx.ValueInfoProto],
    ) -> Body:
        """A body as a model that gives some of its outputs, each under a name of its own."""
        if graph.sparse_initializer:
            raise NotDrivenError("its body has sparse constants")
        inside = {each.name for each in (*graph.initializer, *graph.input)}
        inside |= {name for node in graph.node for name in node.output}
        names = [name for name in _outer_names(graph) if name not in inside]
        captured = [name for name in names if name in self._numbers]
        constants = [self._constants[name] for name in names if name in self._constants]
        lost = set(names) - set(captured) - {each.name for each in constants}
        if lost:
            raise NotDrivenError(f"its body reads {min(lost)!r}, which nothing gives")
        taken = inside | set(names)
        given = [_free_name(f"output_{number}", taken) for number in range(len(places))]
        outside = {name: self._outside(name, taken) for name in captured}
        made = onnx.helper.make_graph(
            [
                *(
                    onnx.helper.make_node("Cast", [info.name], [name], name, to=self._type_of(name))
                    for name, info in outside.items()
                    if info.name != name
                ),
                *graph.node,
                *(
                    onnx.helper.make_node("Identity", [graph.output[place].name], [name], name=name)
                    for place, name in zip(places, given, strict=True)
                ),
            ],
            graph.name or "body",
            [*inputs, *outside.values()],
            [_renamed(info, name) for info, name in zip(outputs, given, strict=True)],
            [*graph.initializer, *constants],
        )
        for each in made.input:
            known_shape(each)
        model = onnx.ModelProto()
        model.CopyFrom(self._model)
        model.graph.CopyFrom(made)
        return Body(model, tuple(self._numbers[name] for name in captured))

    def _outside(self, name: str, taken: set[str]) -> onnx.ValueInfoProto:
        """What a body reads from outside, in the type that it has in memory; there under another name."""
        info: onnx.ValueInfoProto = self._infos[name]
        code = onnx.helper.np_dtype_to_tensor_dtype(self._types[self._numbers[name]].numpy)
        if code == info.type.tensor_type.elem_type or name in self._node.input:
            return info
        return _typed(_renamed(info, _free_name(f"{name}_outside", taken)), code, known_shape(info))


def _outer_names(graph: onnx.GraphProto) -> list[str]:
    """What nodes and outputs of a graph read, subgraphs included, each once, without what subgraphs make."""
    found: dict[str, None] = {}
    for node in graph.node:
        found |= dict.fromkeys(name for name in node.input if name)
        for inner in subgraphs(node):
            own = {each.name for each in (*inner.initializer, *inner.input)}
            own |= {name for each in inner.node for name in each.output}
            found |= dict.fromkeys(name for name in _outer_names(inner) if name not in own)
    return list(found | dict.fromkeys(each.name for each in graph.output))


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _own_shape(info: onnx.ValueInfoProto) -> tuple[int, ...]:
    """The shape of a number or condition of a body: () where the body does not say."""
    return tuple(1 for _ in info.type.tensor_type.shape.dim)


def _typed(info: onnx.ValueInfoProto, code: int, shape: Sequence[int]) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(info.name, code, shape)


def _renamed(info: onnx.ValueInfoProto, name: str) -> onnx.ValueInfoProto:
    made = onnx.ValueInfoProto()
    made.CopyFrom(info)
    made.name = name
    return made
