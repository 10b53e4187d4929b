"""An ONNX model in a terminal: what goes in and out, and how often each operator occurs."""

import json
import math
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx

from wpk.cli.capability import capability_blocks, capability_of
from wpk.loading import read_model
from wpk.report import Block, Table


def model_json(path: Path) -> str:
    """Return everything that `model_text` says, for programs."""
    return json.dumps({**_facts(path), "carried": asdict(capability_of(path))})


def model_text(path: Path) -> list[Block]:
    """Return inputs, outputs, opset, the count of each operator, and what carries them."""
    facts = _facts(path)
    ports = [
        [role, port["name"], port["type"], "x".join(port["shape"])]
        for role in ("input", "output")
        for port in facts[f"{role}s"]
    ]
    operators = [[count, name] for name, count in facts["operators"].items()]
    return [
        f"{path.name}: opset {facts['opset']}, {facts['nodes']} nodes, {facts['parameters']} parameters",
        Table(["", "name", "type", "shape"], ports),
        Table(["count", "operator"], operators),
        *capability_blocks(capability_of(path)),
    ]


def _facts(path: Path) -> dict[str, Any]:
    model = read_model(path)
    graph = model.graph
    constants = {each.name for each in graph.initializer}
    counts = Counter(node.op_type for node in graph.node)
    return {
        "opset": next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx")),
        "nodes": len(graph.node),
        "parameters": sum(math.prod(each.dims) for each in graph.initializer),
        "inputs": [_port(info) for info in graph.input if info.name not in constants],
        "outputs": [_port(info) for info in graph.output],
        "operators": dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
    }


def _port(info: Any) -> dict[str, Any]:
    tensor = info.type.tensor_type
    dims = [
        str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?"
        for d in tensor.shape.dim
    ]
    name = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
    return {"name": info.name, "type": name, "shape": dims}
