"""Write a precision into the types of a graph.

    Conv(x, w)  ->  Conv(Cast(x), w16)      and casts back where the graph or a sensitive node reads

fp32 and tf32 change no type (tf32 is how products round their operands, not how tensors are
stored). With fp16 and bf16 every node computes in 16 bits but

1. sensitive ones: long sums, statistics, steep functions (`types.SENSITIVE`);
2. nodes with a constant that the type cannot hold, e.g. the -3.4e38 of a mask, and the element-wise
   nodes and movements after them, since such values must not pass through 16 bits;
3. nodes without a form of that type at the graph's opset (bf16 raises the opset to 22 first);
4. nodes whose numbers become integers of more than 8 bits, through element-wise nodes and movements, too;
5. products of bytes, whose sums are integers that 16 bits cannot hold;
6. element-wise nodes that will be computed together with those: before a softmax, and after any
   sensitive node, so that no rounding happens within one kernel. What an operator reads of them, too, is rounded
   once for all its readers: it lies in memory in 16 bits.

Runs before fusion, which takes the casts into the operators on either side; graph inputs and outputs
keep their types. Order: precision, fusion, layout.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import Precision
from wpk.graph_passes.clean.definitions.modern_forms import ModernForms
from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult
from wpk.graph_passes.core.byte_products import cast_byte_type
from wpk.graph_passes.core.exact import converted_constant
from wpk.graph_passes.core.functions import is_call
from wpk.graph_passes.core.query import is_graph_output, is_op
from wpk.graph_passes.precision.regions import regions_of
from wpk.graph_passes.precision.types import (
    is_fp32,
    onnx_type,
    typed_inputs,
    variable_type,
)

# The first opset whose Conv, ConvTranspose and pools have a bf16 form (onnx/docs/Changelog.md).
BF16_OPSET = 22
_FP32 = np.dtype(np.float32)


class SetPrecision(GraphPass):
    """Convert weights and intermediate values to the storage type of a precision."""

    name = "set-precision"

    def __init__(self, precision: Precision) -> None:
        """Set the precision to write."""
        self.precision = precision
        self.dtype = precision.storage

    def requires(self, graph: gs.Graph) -> str | None:
        """Refuse graphs whose nodes were fused already: a body keeps its types."""
        fused = next((node for node in graph.nodes if is_call(node)), None)
        if fused is not None and self.precision.storage.bytes == 2 and not self._is_written(graph):
            return f"node '{fused.name}' is fused already; precision comes before fusion"
        return None

    def apply(self, graph: gs.Graph) -> PassResult:
        """Decide for all nodes, then convert; counts the nodes that now compute in 16 bits."""
        result = PassResult()
        if self.dtype.bytes != 2 or self._is_written(graph):
            return result
        if self.precision is Precision.BF16:
            result.refusals.extend(ModernForms(BF16_OPSET).apply(graph).refusals)
        regions = regions_of(graph, self.dtype, result.refuse)
        wide = regions.wide
        writer = _Writer(graph, self)
        for node in list(graph.nodes):
            if id(node) not in wide:
                result.rewritten += int(writer.narrow(node))
            elif id(node) in regions.rounded:
                writer.round(node)
        for node in list(graph.nodes):
            writer.read_stored(node, wide=id(node) in wide)
        return result

    def _is_written(self, graph: gs.Graph) -> bool:
        """Whether some value has the type already: then the model's own choice stands."""
        wanted = variable_type(self.dtype)
        nodes = [*graph.nodes, *(node for f in graph.functions for node in f.nodes)]
        return any(tensor.dtype == wanted for node in nodes for tensor in node.outputs)


class _Writer:
    """Converts values and puts the casts in."""

    def __init__(self, graph: gs.Graph, precision: SetPrecision) -> None:
        self._graph = graph
        self._dtype = precision.dtype
        self._editor = GraphEditor(graph)
        self._narrow: dict[int, gs.Tensor] = {}
        self._wide: dict[int, gs.Tensor] = {}
        self._keep: list[gs.Tensor] = []

    def narrow(self, node: gs.Node) -> bool:
        """Let ``node`` write 16 bits; return whether it writes floats at all."""
        outputs = list(node.outputs)
        if not any(is_fp32(tensor) for tensor in outputs):
            return any(typed_inputs(node, self._graph.opset))
        if is_op(node, "Cast"):
            node.attrs["to"] = onnx_type(self._dtype)
        node.outputs = [self._narrowed(t) if is_fp32(t) else t for t in outputs]
        return True

    def round(self, node: gs.Node) -> None:
        """Let all that read what ``node`` computes in fp32 read it in 16 bits."""
        (output,) = node.outputs
        computed = self._like(output, f"{output.name}_fp32", _FP32)
        node.outputs = [computed]
        output.dtype = variable_type(self._dtype)
        self._add_cast(computed, output, onnx_type(self._dtype))

    def _narrowed(self, tensor: gs.Tensor) -> gs.Tensor:
        """Return the 16-bit tensor to write instead; a graph output is cast back from it."""
        if not is_graph_output(self._graph, tensor):
            tensor.dtype = variable_type(self._dtype)
            return tensor
        new = self._like(tensor, f"{tensor.name}_{self._dtype}", variable_type(self._dtype))
        self._add_cast(new, tensor, 1)
        for reader in list(tensor.outputs):
            reader.inputs = [new if t is tensor else t for t in reader.inputs]
        return new

    def read_stored(self, node: gs.Node, *, wide: bool) -> None:
        """Give ``node`` its inputs in the type in which it computes."""
        if is_call(node) or is_op(node, "Cast"):
            return
        if wide:
            wanted = variable_type(self._dtype)
            node.inputs = [
                self._cast(t, self._wide, "fp32") if t.dtype == wanted else t
                for t in node.inputs
            ]  # fmt: skip
            return
        typed = typed_inputs(node, self._graph.opset)
        node.inputs = [
            self._cast(t, self._narrow, str(self._dtype)) if follows else t
            for t, follows in zip(node.inputs, typed, strict=True)
        ]

    def _cast(self, tensor: gs.Tensor, cache: dict[int, gs.Tensor], suffix: str) -> gs.Tensor:
        if id(tensor) in cache:
            return cache[id(tensor)]
        name = f"{tensor.name}_{suffix}"
        if isinstance(tensor, gs.Constant):
            name = self._editor.new_name(name)
            new = converted_constant(name, tensor, self._dtype.numpy)
        elif suffix == "fp32":
            new = self._like(tensor, name, _FP32)
            self._add_cast(tensor, new, 1)
        else:
            new = self._like(tensor, name, variable_type(self._dtype))
            # 16 bits hold bytes: what restores them stays one cast and a few scalars (`restoration`).
            is_bytes = cast_byte_type(tensor) is not None
            source = tensor.inputs[0].inputs[0] if is_bytes else tensor
            self._add_cast(source, new, onnx_type(self._dtype))
        cache[id(tensor)] = new
        self._keep.append(tensor)
        return new

    def _like(self, tensor: gs.Tensor, name: str, dtype: object) -> gs.Variable:
        shape = None if tensor.shape is None else list(tensor.shape)
        return gs.Variable(self._editor.new_name(name), dtype, shape)

    def _add_cast(self, source: gs.Tensor, target: gs.Tensor, to: int) -> None:
        name = self._editor.new_name(f"{target.name}_cast")
        self._graph.nodes.append(gs.Node("Cast", name, {"to": to}, [source], [target]))
