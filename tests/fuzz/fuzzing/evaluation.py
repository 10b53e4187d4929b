"""Nodes executed one by one with ONNX Runtime, exactly or with roundings drawn at random.

A model's sensitivity to rounding is not known beforehand. So it is executed several times while each
result is disturbed by as much as an honest implementation may round: what the outputs then scatter by
is what a plan may differ by. A tie in front of Floor, Cast or a comparison shows as scatter too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from fuzzing.rounding import (
    AROUND_ONE,
    BF16,
    EXACT,
    FLOATS,
    ROUNDOFF,
    SMALLEST,
    SUMMING,
)

Array = NDArray[np.generic]
Arrays = dict[str, Array]


@dataclass(frozen=True)
class Noise:
    """How much each result is disturbed.

    Attributes:
        roundoff: Of what is stored between operators.
        products: Of the factors of products.
        strength: Roundings that one operator may make, one after the other.
        grid: The 16-bit type that tensors are stored in: two numbers may become one.
    """

    roundoff: float
    products: float
    strength: float = 2.0
    grid: np.dtype | None = None


def options() -> onnxruntime.SessionOptions:
    """One thread, no rewriting, no messages."""
    chosen = onnxruntime.SessionOptions()
    chosen.log_severity_level = 4
    chosen.intra_op_num_threads = chosen.inter_op_num_threads = 1
    chosen.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return chosen


def reads(node: onnx.NodeProto) -> set[str]:
    """Names of the tensors that a node reads, those of its subgraphs included."""
    found = set(node.input)
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            inner = set().union(
                *(reads(each) for each in graph.node), {o.name for o in graph.output}
            )
            made = {name for each in graph.node for name in each.output}
            found |= inner - made - {each.name for each in (*graph.input, *graph.initializer)}
    return found - {""}


class NodeRunner:
    """One node, executed with ONNX Runtime on arrays of the types that it was made with."""

    def __init__(self, node: onnx.NodeProto, kinds: Mapping[str, np.dtype], opset: int) -> None:
        """Load the node; ``kinds`` are the types of all that it reads, by name.

        Raises:
            Exception: One of ONNX Runtime's: the node is not valid, or not implemented.
        """
        self.node = node
        self._names = list(kinds)
        infos, nodes = [], []
        body = onnx.NodeProto()
        body.CopyFrom(node)
        for index, name in enumerate(node.input):
            if kinds.get(name) == BF16:  # NumPy and ONNX Runtime do not meet in this type
                body.input[index] = f"{name}_bf16"
        for name, dtype in kinds.items():
            fed = np.dtype(np.float32) if dtype == BF16 else dtype
            code = onnx.helper.np_dtype_to_tensor_dtype(fed)
            infos.append(onnx.helper.make_tensor_value_info(name, code, None))
            if dtype == BF16:
                to = onnx.TensorProto.BFLOAT16
                nodes.append(onnx.helper.make_node("Cast", [name], [f"{name}_bf16"], to=to))
        nodes.append(body)
        self._outputs = [name for name in node.output if name]
        outputs = [onnx.ValueInfoProto(name=name) for name in self._outputs]
        graph = onnx.helper.make_graph(nodes, "node", infos, outputs)
        ids = [onnx.helper.make_opsetid("", opset)]
        model = onnx.helper.make_model(graph, opset_imports=ids, ir_version=10)
        self._session = _session(model, body, nodes)

    def __call__(self, arrays: Mapping[str, Array]) -> Arrays:
        """The node's outputs by name."""
        fed = {
            name: arrays[name].astype(np.float32) if arrays[name].dtype == BF16 else arrays[name]
            for name in self._names
        }
        made = self._session.run(self._outputs, fed)
        wide = self._session.wide
        return {
            name: np.asarray(array, BF16) if name in wide else np.asarray(array)
            for name, array in zip(self._outputs, made, strict=True)
        }


class _Session:
    """A session and the outputs that are bfloat16 but handed over as float32."""

    def __init__(self, model: onnx.ModelProto, wide: frozenset[str]) -> None:
        self.wide = wide
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options(), providers=["CPUExecutionProvider"]
        )
        self.types = {o.name: o.type for o in self._session.get_outputs()}

    def run(self, names: Sequence[str], fed: Mapping[str, Array]) -> list[Array]:
        found: list[Array] = self._session.run(list(names), dict(fed))
        return found


def _session(
    model: onnx.ModelProto, body: onnx.NodeProto, nodes: Sequence[onnx.NodeProto]
) -> _Session:
    session = _Session(model, frozenset())
    wide = frozenset(name for name, kind in session.types.items() if kind == "tensor(bfloat16)")
    if not wide:
        return session
    del nodes
    last = model.graph.node[-1]
    for index, name in enumerate(body.output):
        if name in wide:
            last.output[index] = f"{name}_narrow"
            cast = onnx.helper.make_node(
                "Cast", [f"{name}_narrow"], [name], to=onnx.TensorProto.FLOAT
            )
            model.graph.node.append(cast)
    return _Session(model, wide)


_SHAPING = {"Resize": 1, "Range": 0}
"""Operators whose inputs from here on are floating point numbers that decide a shape: not to disturb."""


class ModelRunner:
    """A whole model, node by node."""

    def __init__(self, model: onnx.ModelProto) -> None:
        """Make every node ready once its inputs' types are known: at the first run."""
        self.model = model
        ids = {each.domain: each.version for each in model.opset_import}
        self._opset = ids.get("", ids.get("ai.onnx", 0))
        self._constants = {
            each.name: onnx.numpy_helper.to_array(each) for each in model.graph.initializer
        }
        self._parameters = {
            name
            for node in model.graph.node
            for name in node.input[_SHAPING.get(node.op_type, 99) :]
        }
        self._runners: list[NodeRunner] = []

    def run(
        self,
        inputs: Mapping[str, Array],
        noise: Noise | None = None,
        rng: np.random.Generator | None = None,
    ) -> Arrays:
        """Every tensor of the model by name; with ``noise``, disturbed by draws from ``rng``."""
        known: Arrays = {**self._constants, **inputs}
        if noise is not None and rng is not None and noise.grid is not None:
            stored = {n: _stored(each, noise, rng) for n, each in known.items()}
            known |= {n: each for n, each in stored.items() if n not in self._parameters}
        for index, node in enumerate(self.model.graph.node):
            if index == len(self._runners):
                kinds = {name: known[name].dtype for name in sorted(reads(node))}
                self._runners.append(NodeRunner(node, kinds, self._opset))
            runner = self._runners[index]
            if noise is None or rng is None or self._parameters & set(node.output):
                known |= runner(known)
            else:
                known |= _disturbed(runner, known, noise, rng)
        return known


def _disturbed(runner: NodeRunner, known: Arrays, noise: Noise, rng: np.random.Generator) -> Arrays:
    op = runner.node.op_type
    given = {name: known[name] for name in sorted(reads(runner.node))}
    if op in SUMMING:
        size = max(noise.products, noise.roundoff) * noise.strength
        data = runner.node.input[:1] if op in _SHAPING else sorted(given)
        given |= {name: _scattered(given[name], size, 0.0, rng) for name in data}
    made = runner(given)
    size = noise.roundoff * noise.strength
    if op in EXACT and noise.grid is None:
        size = 0.0
    floor: float | Array = size if op in AROUND_ONE else 0.0
    if op in ("InstanceNormalization", "LayerNormalization"):
        floor = size * _centred(runner.node, given)
    return {name: _scattered(array, size, floor, rng, noise) for name, array in made.items()}


def _centred(node: onnx.NodeProto, given: Mapping[str, Array]) -> Array:
    """|mean| * |scale| / sqrt(variance + epsilon): what centring cancels, at its size behind it.

    Where a row is as good as constant, disturbing what goes in shows nothing of it.
    """
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    x, scale = (np.abs(given[name].astype(np.float64)) for name in node.input[:2])
    instance = node.op_type == "InstanceNormalization"
    first = 2 if instance else int(attributes.get("axis", -1)) % x.ndim
    axes = tuple(range(first, x.ndim))
    if instance:
        scale = scale.reshape(-1, *[1] * (x.ndim - 2))
    values = given[node.input[0]].astype(np.float64)
    deviation = np.sqrt(values.var(axes, keepdims=True) + attributes.get("epsilon", 1e-5))
    level: Array = np.broadcast_to(x.mean(axes, keepdims=True) * scale / deviation, x.shape)
    return level


def _stored(array: Array, noise: Noise, rng: np.random.Generator) -> Array:
    return _scattered(array, noise.roundoff, 0.0, rng, noise)


def _scattered(
    array: Array,
    relative: float,
    absolute: float | Array,
    rng: np.random.Generator,
    noise: Noise | None = None,
) -> Array:
    """The array with each element moved by up to ``relative`` of itself and ``absolute``."""
    if array.dtype not in FLOATS:
        return array
    own = ROUNDOFF[array.dtype]
    if own > ROUNDOFF[FLOATS[0]]:  # of a 16-bit type: it is rounded to that whatever it is
        relative = max(relative, own)
        absolute = np.maximum(absolute, SMALLEST[array.dtype])
    elif noise is not None and noise.grid is not None:
        absolute = np.maximum(absolute, SMALLEST[noise.grid])
    if relative == 0.0 and not np.any(absolute):
        return array
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        limit = np.abs(wide) * relative + absolute
        moved = wide + limit * rng.uniform(-1.0, 1.0, array.shape)
        if noise is not None and noise.grid is not None and rng.random() < 0.5:
            moved = moved.astype(noise.grid)
        return np.where(np.isfinite(wide), moved, wide).astype(array.dtype)
