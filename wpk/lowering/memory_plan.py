"""Where the tensors of an optimized graph may lie: inside others, with padded rows, or alone."""

import onnx_graphsurgeon as gs

from wpk.graph_passes import ONNX_DOMAINS
from wpk.lowering.anchors.normalisation import OPERATORS as NORMALISATIONS
from wpk.lowering.bare_nodes import ALIASES
from wpk.lowering.choices import LoweringChoices
from wpk.lowering.memory_map import MemoryMap
from wpk.lowering.partition import functions_of
from wpk.lowering.placement import ALIGNMENT, element_bytes, place_concatenations
from wpk.lowering.split_placement import place_split_parts


def plan_memory(
    graph: gs.Graph, plain: frozenset[str], choices: LoweringChoices | None = None
) -> MemoryMap:
    """Return the map of a graph's memory, with nothing in it yet.

    Args:
        graph: The optimized graph, with shapes.
        plain: Tensors that keep a row-major layout in buffers of their own.
        choices: What is decided by a choice; by default as usually.
    """
    choices = choices or LoweringChoices()
    movable = _movable(graph, plain)
    slots = place_concatenations(graph, movable)
    shared = place_split_parts(graph, movable, slots)
    slots |= shared.slots
    padded = _padded(graph, movable - set(slots), choices)
    return MemoryMap(slots, padded, {**_inner_shapes(graph), **shared.wholes})


def _padded(graph: gs.Graph, movable: set[str], choices: LoweringChoices) -> frozenset[str]:
    """Channels-last tensors that a convolution reads and whose rows do not align."""
    functions = functions_of(graph)
    names = set()
    for tensor in graph.tensors().values():
        if tensor.name not in movable or not tensor.shape or len(tensor.shape) < 3:
            continue
        if not any(_takes_channels_last(node, tensor, functions) for node in tensor.outputs):
            continue
        if _is_written_along_rows(tensor, functions):
            continue
        channels, size = tensor.shape[-1], element_bytes(tensor)
        uneven = isinstance(channels, int) and channels > 1 and channels * size % ALIGNMENT
        if uneven and choices.pads(tensor):
            names.add(tensor.name)
    return frozenset(names)


def _is_written_along_rows(tensor: gs.Tensor, functions: dict[str, gs.Function]) -> bool:
    """Tell whether a normalisation makes a tensor: it writes padding behind its own rows only."""
    made = [functions[node.op] for node in tensor.inputs if node.op in functions]
    return any(node.op in NORMALISATIONS for function in made for node in function.nodes)


def _takes_channels_last(
    node: gs.Node, tensor: gs.Tensor, functions: dict[str, gs.Function]
) -> bool:
    """Whether a convolution reads the tensor's last axis as its channels."""
    function = functions.get(node.op)
    if function is None:
        return False
    pairs = zip(function.inputs, node.inputs, strict=False)
    names = {inner.name for inner, outer in pairs if outer is tensor}
    for conv in [n for n in function.nodes if n.op == "Conv" and n.attrs.get("group", 1) == 1]:
        made, channels = conv.inputs[0], 1
        while made.inputs and made.inputs[0].op in ("Cast", "Transpose"):
            perm = made.inputs[0].attrs.get("perm", ())
            channels = perm[channels] if perm else channels
            made = made.inputs[0].inputs[0]
        if made.name in names and channels == len(tensor.shape) - 1:
            return True
    return False


def _movable(graph: gs.Graph, plain: frozenset[str]) -> set[str]:
    """Return the tensors that may lie anywhere, because an operator writes them."""
    fixed = {t.name for t in (*graph.inputs, *graph.outputs)} | plain
    names = set()
    for node in graph.nodes:
        if node.domain in ONNX_DOMAINS and (node.op in ALIASES or node.op == "Split"):
            continue
        names |= {t.name for t in node.outputs[:1] if t.name not in fixed}
    return names


def _inner_shapes(graph: gs.Graph) -> dict[str, tuple[int, ...]]:
    shapes = {}
    for name, tensor in graph.tensors().items():
        inner = list(tensor.shape or ())[1:]
        if all(isinstance(n, int) for n in inner):
            shapes[name] = tuple(inner)
    return shapes
