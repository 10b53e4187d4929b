"""What one attempt at lowering a graph builds up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.graph_passes import Dims
from wpk.lowering.anchors.base import LoweredProblem
from wpk.lowering.context import Context
from wpk.lowering.elementwise import lower_elementwise
from wpk.lowering.free_axis import is_free, sized, stand_in
from wpk.lowering.known_operators import KnownOperators
from wpk.lowering.memory_map import MemoryMap
from wpk.lowering.program import Operator
from wpk.lowering.refusal import RefusedError, UnknownInputError
from wpk.lowering.symbols import of_view
from wpk.lowering.views import View
from wpk.problems import Problem


@dataclass
class LoweringState:
    """Views of all tensors so far, and the operators that make them.

    Attributes:
        graph: The optimized graph.
        free: Tuned values of the free dimensions.
        plain: Tensors that keep a row-major layout in buffers of their own.
        context: Precision and constants.
        memory: Where values lie.
        known: Operators that were lowered before.
        shapes: Shapes that are sure; None where those of the graph are taken.
        views: How each tensor of the graph lies in memory, by name.
        operators: In execution order.
        models: What ONNX Runtime executes, by SHA-256.
        kept: Tensors that stay in the machine's memory, since only a run decides their shape, with
            their types.
        largest: The largest sizes of free dimensions for which constants have enough rows.
    """

    graph: gs.Graph
    free: dict[str, int]
    plain: frozenset[str]
    context: Context
    memory: MemoryMap
    shapes: Mapping[str, Dims] | None = None
    known: KnownOperators = field(default_factory=KnownOperators)
    views: dict[str, View] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    models: dict[str, bytes] = field(default_factory=dict)
    kept: dict[str, DType] = field(default_factory=dict)
    largest: dict[str, int] = field(default_factory=dict)

    def view(self, tensor: gs.Tensor) -> View:
        """How a tensor lies in memory; constants are registered on first use.

        Raises:
            UnknownInputError: The node that makes it was refused.
        """
        if tensor.name not in self.views:
            if not isinstance(tensor, gs.Constant):
                raise UnknownInputError(f"it reads '{tensor.name}', which has no place in memory")
            self.views[tensor.name] = self.context.added(tensor.name, np.asarray(tensor.values))
        return self.views[tensor.name]

    def sure_dims(self, tensor: gs.Tensor) -> Dims | None:
        """The shape that ONNX has for a tensor that no kernel makes; None where it is not sure."""
        return tensor.shape if self.shapes is None else self.shapes.get(tensor.name)

    def sure_shape(self, tensor: gs.Tensor) -> tuple[int, ...] | None:
        """The shape that memory has for a tensor that no kernel makes: at least one axis, free ones in front.

        None where it is not known before a run, or is another.
        """
        dims = self.sure_dims(tensor)
        if dims is None:
            return None
        sizes = [n for n in dims if n in self.free or (isinstance(n, int) and n > 0)]
        shape = tuple(stand_in(n, list(self.free)) for n in sizes if n is not None) or (1,)
        apart = any(is_free(size) and not is_free(first) for first, size in pairwise(shape))
        return None if apart or len(sizes) != len(dims) else shape

    def emit(
        self,
        name: str,
        nodes: tuple[str, ...],
        lowered: LoweredProblem,
        output: str,
        call: str,
        note: str = "",
    ) -> None:
        """Append an operator that writes value ``output``; see `Operator` for the rest."""
        problem = self.sized(lowered, output)
        self.append(name, nodes, problem, lowered.inputs, output, call, note)

    def sized(self, lowered: LoweredProblem, output: str) -> Problem:
        """Return a problem with tuned sizes of the free dimensions.

        Raises:
            RefusedError: No kernel takes its types, or a free dimension decides something that is a constant.
        """
        types = {self.memory.values[output].dtype, *(view.dtype for view in lowered.inputs)}
        if DType.FP64 in types and not lowered.problem.carries_double:
            raise RefusedError(f"tensors of {DType.FP64}, which no kernel of this kind takes")
        return sized(lowered.problem, self.free)

    def append(
        self,
        name: str,
        nodes: tuple[str, ...],
        problem: Problem,
        views: Sequence[View],
        output: str,
        call: str,
        note: str = "",
        beside: tuple[str, ...] = (),
    ) -> None:
        """Append an operator whose problem has its sizes; the views are what it reads, ``beside`` what else it writes."""
        inputs, outputs = tuple(self.source(view) for view in views), (output, *beside)
        self.operators.append(Operator(name, nodes, problem, inputs, outputs, call, note))

    def copy(self, view: View, name: str, note: str) -> None:
        """Emit an explicit copy of a view into the home of tensor ``name``."""
        home = self.memory.home(name, view.dtype, view.shape, view.leading)
        self.views[name] = home
        self.copy_to(view, home, name, note)

    def copy_to(self, view: View, home: View, name: str, note: str) -> None:
        """Emit an explicit copy of a view to a place; ``name`` is for the operator's name."""
        operator = f"copy_{name}"
        taken = sum(o.name.startswith(operator) for o in self.operators)
        self.emit(
            f"{operator}_{taken}" if taken else operator,
            (),
            lower_elementwise(of_view(view), home),
            self.memory.at(home),
            "",
            note,
        )

    def source(self, view: View) -> str:
        """Name of the value or constant that starts where the view starts."""
        if view.source in self.memory.values:
            return self.memory.at(view)
        if view.offset:
            rest = self.context.constants[view.source].reshape(-1)[view.offset :]
            return self.context.added(f"{view.source}@{view.offset}", rest).source
        return view.source
