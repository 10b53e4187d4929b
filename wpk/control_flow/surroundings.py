"""What surrounds a node in its closed model: what it reads and gives, with types and shapes."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from wpk.control_flow.types import NotDrivenError, Size, Source, has_shape, known_shape
from wpk.dtypes import DType


class Surroundings:
    """The closed model of one node.

    Attributes:
        model: The model.
        node: The node.
        constants: Its constants, by name.
        numbers: Numbers of its inputs, by name.
        results: Names of its outputs.
    """

    def __init__(self, model: onnx.ModelProto, types: Sequence[DType]) -> None:
        """Take a model of one node, and the types that its inputs have in memory."""
        graph = model.graph
        self._types = types
        self.model, self.node = model, graph.node[0]
        self.constants = {each.name: each for each in graph.initializer}
        self.numbers = {each.name: number for number, each in enumerate(graph.input)}
        self.results = [each.name for each in graph.output]
        self._infos = {each.name: each for each in (*graph.input, *graph.output)}

    def source(self, name: str) -> Source:
        """What is read under a name."""
        if name in self.constants:
            return numpy_helper.to_array(self.constants[name])
        if name not in self.numbers:
            raise _lost(name)
        return self.numbers[name]

    def deciding(self, name: str, code: int) -> Source:
        """What decides the way that is taken: one element of a type."""
        if self.type_of(name) != code or any(size != 1 for size in self.shape_of(name)):
            words = TensorProto.DataType.Name(code).lower()
            raise NotDrivenError(f"'{name}', which decides, is not one element of {words}")
        return self.source(name)

    def type_of(self, name: str) -> int:
        """ONNX's number of the type of an input, output or constant."""
        if name in self.constants:
            return int(self.constants[name].data_type)
        return int(self.info(name).type.tensor_type.elem_type)

    def shape_of(self, name: str) -> tuple[Size, ...]:
        """The shape of an input, output or constant."""
        if name in self.constants:
            return tuple(self.constants[name].dims)
        return known_shape(self.info(name))

    def info(self, name: str) -> onnx.ValueInfoProto:
        """An input or output."""
        if name not in self._infos:
            raise _lost(name)
        found: onnx.ValueInfoProto = self._infos[name]
        return found

    def part(self, name: str) -> onnx.ValueInfoProto:
        """A part of an input or output along its first axis; of an unknown shape where that is not known."""
        if name not in self.constants and not has_shape(self.info(name)):
            return self.info(name)
        shape = self.shape_of(name)
        if not shape:
            raise NotDrivenError(f"'{name}' has no axis to be cut along")
        return onnx.helper.make_tensor_value_info(name, self.type_of(name), shape[1:])

    def places(self, name: str) -> Size | None:
        """How many parts an output has along its first axis; None where the turns decide."""
        return self.shape_of(name)[0] if has_shape(self.info(name)) else None

    def memory_type(self, name: str) -> int:
        """ONNX's number of the type that an input has in memory."""
        dtype = np.dtype(self._types[self.numbers[name]].numpy)
        return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))


def _lost(name: str) -> NotDrivenError:
    return NotDrivenError(f"it reads {name!r}, which nothing gives")
