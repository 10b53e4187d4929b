"""Read an ONNX file: check it, inline its local functions, bind its shapes, and name every node.

What comes out is a `gs.Graph` that passes may rewrite. The file is checked by path, so models over
2 GB and external data work; what is wrong is said in one line that names the file.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from numpy.typing import NDArray
from onnx import inliner

from wpk.errors import GraphError, UnsupportedError, WpkError
from wpk.external_data import give_weights, is_plain, lies_beside, load_beside
from wpk.file_arrays import LARGE_BYTES, in_file
from wpk.file_kinds import FileKind, kind_of_file
from wpk.free_shapes import bind_shapes
from wpk.learning_functions import is_written, write_functions
from wpk.model_checks import check_shapes, check_types

OLDEST_OPSET = 11
"""Exporters have written opset 11 or newer since 2020; older forms of Clip, Pad and Resize differ."""

_DEFAULT_DOMAINS = ("", "ai.onnx")


def load_graph(path: Path, shapes: Mapping[str, Sequence[object]] | None = None) -> gs.Graph:
    """Read and check a model.

    Args:
        path: The ONNX file; external data lies beside it.
        shapes: Shapes of inputs by name. A dimension of -1 stays as the model has it.

    Returns:
        The graph: no local functions, unique node names, no initializer among the inputs, every
        input dimension a number but for a leading one that may be free (a string).

    Raises:
        GraphError: The file cannot be read, is damaged, malformed or cyclic, its opset is outside
            what is carried, or its shapes are not decided or contradict each other.
        UnsupportedError: It has operators that ONNX does not define, or types of inputs and
            outputs that wpk does not carry; all are listed.
    """
    model = read_model(path)
    with _in_words(path):
        _drop_weights_from_inputs(model.graph)
        check_types(model.graph)
        large = _read_constants(model.graph)
        bind_shapes(model.graph, shapes or {})
        check_shapes(model)
        _name_nodes(model.graph)
        graph: gs.Graph = gs.import_onnx(model)
        give_weights(graph, model.graph, path.parent.resolve())
        _give_read(graph, large)
        return graph


def read_model(path: Path) -> onnx.ModelProto:
    """Read and check a model, its local functions inlined; large weights stay beside it.

    Raises:
        GraphError, UnsupportedError: For the same reasons as in `load_graph`.
    """
    with _in_words(path):
        return _checked_model(path)


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Turn whatever exception ONNX's own code raises over a damaged file into an error in words."""
    try:
        yield
    except WpkError:
        raise
    except Exception as error:
        raise GraphError(
            f"{path} holds what ONNX cannot read: {type(error).__name__}: {_first_line(error)}",
            fix="export the model again; if ONNX Runtime runs it, report this as a bug",
        ) from error


def _checked_model(path: Path) -> onnx.ModelProto:
    skeleton = _parse(path)
    opset = _checked_opset(path, skeleton)
    written = _check_operators(skeleton, opset)
    try:
        onnx.checker.check_model(str(path))
        load_beside(skeleton, path.parent.resolve())
    except (onnx.checker.ValidationError, OSError, ValueError) as error:
        raise GraphError(
            f"{path} is not a valid ONNX model: {_first_line(error)}",
            fix="export the model again, with its external data files beside it",
        ) from error
    if not skeleton.graph.node or not skeleton.graph.output:
        raise GraphError(
            f"{path} holds no computation: {len(skeleton.graph.node)} nodes, "
            f"{len(skeleton.graph.output)} outputs",
            fix="export the model again; there is nothing to optimize in this file",
        )
    if written:
        write_functions(skeleton, opset)
    return inliner.inline_local_functions(skeleton) if skeleton.functions else skeleton


def _parse(path: Path) -> onnx.ModelProto:
    if not path.is_file():
        raise GraphError(f"{path} is not a file", fix="give the path of an ONNX model")
    _refuse_others(path)
    try:
        model = onnx.load(path, load_external_data=False)
    except OSError as error:
        raise GraphError(
            f"{path} cannot be read: {error.strerror}", fix="check the file's permissions"
        ) from error
    except (DecodeError, ValueError, RuntimeError) as error:
        raise GraphError(
            f"{path} is no ONNX file, or is cut off: {_first_line(error)}",
            fix="copy or export the model again",
        ) from error
    if not model.HasField("graph"):
        raise GraphError(f"{path} is empty: it holds no graph", fix="export the model again")
    return model


_INSTEAD = {
    FileKind.PLAN: "give the ONNX model that the plan was made from; where a command takes both, the plan "
    "comes first",
    FileKind.TORCH: "export it first: torch.onnx.export(module, example_inputs, 'model.onnx'); in Python "
    "wpk.optimize takes the module itself",
    FileKind.TENSORRT: "give the ONNX model that the engine was made from",
    FileKind.TENSORRT_RTX: "give the ONNX model that the engine was made from",
}
"""What to do about a file that is given in a model's place."""


def _refuse_others(path: Path) -> None:
    kind = kind_of_file(path)
    if kind is not None and kind in _INSTEAD:
        raise GraphError(
            f"{path} is {kind.value}, and an ONNX model is asked for here", fix=_INSTEAD[kind]
        )


def _checked_opset(path: Path, model: onnx.ModelProto) -> int:
    newest = onnx.defs.onnx_opset_version()
    versions = [o.version for o in model.opset_import if o.domain in _DEFAULT_DOMAINS]
    seen = versions[0] if versions else None
    if seen is None or not OLDEST_OPSET <= seen <= newest:
        raise GraphError(
            f"{path} uses opset {seen}; wpk reads {OLDEST_OPSET} to {newest}",
            fix="export it again with an opset_version in that range"
            if seen is None or seen < OLDEST_OPSET
            else "install a newer onnx package, or export with an older opset_version",
        )
    return int(seen)


def _check_operators(model: onnx.ModelProto, opset: int) -> bool:
    """Check that ONNX defines all operators; return whether some are to be written by its own."""
    functions = {(f.domain, f.name) for f in model.functions}
    unknown, written = [], False
    bodies = [model.graph.node, *(f.node for f in model.functions)]
    for node in (n for body in bodies for n in _walk(body)):
        if (node.domain, node.op_type) in functions:
            continue
        if is_written(node, opset):
            written = True
            continue
        if node.domain not in _DEFAULT_DOMAINS:
            why = f"domain '{node.domain}' is not ONNX's"
        elif not _is_defined(node.op_type, opset):
            why = "not in the model's opset"
        else:
            continue
        unknown.append(f"{node.name or '(unnamed)'}: {node.op_type}: {why}")
    if unknown:
        raise UnsupportedError(
            f"{len(unknown)} nodes have operators that ONNX does not define:\n    "
            + "\n    ".join(unknown),
            fix="export the model with standard ONNX operators only",
        )
    return written


def _is_defined(operator: str, version: int) -> bool:
    try:
        return not onnx.defs.get_schema(operator, version, "").deprecated
    except (onnx.defs.SchemaError, TypeError):  # TypeError: a name that is no text
        return False


def _walk(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield all nodes, those of subgraphs (If, Loop) included."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from _walk(graph.node)


def _drop_weights_from_inputs(graph: onnx.GraphProto) -> None:
    """Make initializers constants only: before IR version 4 each of them was an input, too."""
    constants = {i.name for i in graph.initializer} | {
        i.values.name for i in graph.sparse_initializer
    }
    kept = [each for each in graph.input if each.name not in constants]
    del graph.input[:]
    graph.input.extend(kept)


def _read_constants(graph: onnx.GraphProto) -> dict[str, NDArray[np.generic]]:
    """Read every constant once, which graphsurgeon would do when a pass does; return large ones by name."""
    large: dict[str, NDArray[np.generic]] = {}
    for constant in graph.initializer:
        if not lies_beside(constant):
            array = _readable(constant, constant.name)
            if array.nbytes >= LARGE_BYTES and is_plain(constant):
                large[constant.name] = in_file(array)
    for node in _walk(graph.node):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _readable(attribute.t, f"{attribute.name} of node {node.name}")
    return large


def _readable(constant: onnx.TensorProto, name: str) -> NDArray[np.generic]:
    try:
        return onnx.numpy_helper.to_array(constant)
    except Exception as error:
        raise GraphError(
            f"constant '{name}' is damaged: {_first_line(error)}", fix="export the model again"
        ) from error


def _give_read(graph: gs.Graph, arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Give constants of an imported graph the arrays that were read; all of its copies share these."""
    for name, tensor in graph.tensors().items():
        if name in arrays and isinstance(tensor, gs.Constant):
            tensor.values = arrays[name]


def _name_nodes(graph: onnx.GraphProto) -> None:
    """Name every node uniquely: graphsurgeon tells nodes apart by name."""
    nodes = list(_walk(graph.node))
    taken = {node.name for node in nodes}
    seen: set[str] = set()
    for index, node in enumerate(nodes):
        if node.name and node.name not in seen:
            seen.add(node.name)
            continue
        stem = node.name or f"{node.op_type}_{index}"
        name, count = stem, 1
        while name in taken:
            count += 1
            name = f"{stem}_{count}"
        node.name = name
        taken.add(name)
        seen.add(name)


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
