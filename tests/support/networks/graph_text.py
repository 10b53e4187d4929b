"""Graphs without functions from ONNX text."""

from collections.abc import Mapping

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.lowering.flat_graph import FlatGraph, flatten


def flat(text: str, constants: Mapping[str, NDArray[np.generic]] | None = None) -> FlatGraph:
    """The graph of ``(inputs) => (outputs) { nodes }`` with constants by name."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> g {text}')
    for name, array in (constants or {}).items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return flatten(gs.import_onnx(model).toposort())
