"""What a model must be beyond well-formed: shapes that fit, sizes and types that wpk carries."""

from collections.abc import Iterable
from math import prod

import numpy as np
import onnx
from onnx import shape_inference

from wpk.dtypes import DType, from_numpy
from wpk.errors import GraphError, UnsupportedError

MAX_ELEMENTS = 2**31 - 1
"""Kernels index a tensor with 32-bit integers where they can; nothing larger is carried."""

_SMALL = 1024
"""Constants up to here may decide shapes; larger ones enter shape inference as types only."""


def check_shapes(model: onnx.ModelProto) -> None:
    """Infer all shapes and check that they fit each other and what is carried.

    Raises:
        GraphError: Shapes contradict each other, or claim tensors that are too large.
    """
    _check_sizes([*model.graph.input, *model.graph.output])
    try:
        inferred = shape_inference.infer_shapes(_without_weights(model), strict_mode=True)
    except (shape_inference.InferenceError, RuntimeError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise GraphError(
            f"shapes contradict each other: {' '.join(lines)[:300]}",
            fix="check --shapes and the model: ONNX Runtime should refuse it too",
        ) from error
    _check_sizes([*inferred.graph.value_info, *inferred.graph.output])


def check_types(graph: onnx.GraphProto) -> None:
    """Check the element types of inputs and outputs.

    Raises:
        UnsupportedError: Some are not carried; all are listed.
    """
    wrong = []
    for role, infos in (("input", graph.input), ("output", graph.output)):
        for info in infos:
            if not _is_carried(info.type):
                wrong.append(f"    {role} '{info.name}': {_type_words(info.type)}")
    if wrong:
        raise UnsupportedError(
            "the model has inputs or outputs that wpk does not carry:\n" + "\n".join(wrong),
            fix=f"export it with tensors of {', '.join(DType)}",
        )


def _is_carried(kind: onnx.TypeProto) -> bool:
    if not kind.HasField("tensor_type"):
        return False
    code = kind.tensor_type.elem_type
    if code == onnx.TensorProto.UNDEFINED or code not in onnx.TensorProto.DataType.values():
        return False
    return from_numpy(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code))) is not None


def _type_words(kind: onnx.TypeProto) -> str:
    if not kind.HasField("tensor_type"):
        return str(kind.WhichOneof("value") or "no type").removesuffix("_type")
    code = kind.tensor_type.elem_type
    known = code in onnx.TensorProto.DataType.values()
    return str(onnx.TensorProto.DataType.Name(code)) if known else f"type {code}"


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its larger constants as typed inputs, and no remembered shapes."""
    light = onnx.ModelProto(ir_version=model.ir_version)
    light.opset_import.extend(model.opset_import)
    light.graph.name = model.graph.name
    light.graph.node.extend(model.graph.node)
    light.graph.input.extend(model.graph.input)
    light.graph.output.extend(model.graph.output)
    for constant in model.graph.initializer:
        if prod(constant.dims) <= _SMALL:
            light.graph.initializer.append(constant)
        else:
            light.graph.input.append(
                onnx.helper.make_tensor_value_info(
                    constant.name, constant.data_type, list(constant.dims)
                )
            )
    return light


def _check_sizes(infos: Iterable[onnx.ValueInfoProto]) -> None:
    for info in infos:
        sizes = [d.dim_value for d in info.type.tensor_type.shape.dim if d.HasField("dim_value")]
        if any(size < 0 for size in sizes):
            raise GraphError(
                f"tensor '{info.name}' has a negative dimension", fix="export the model again"
            )
        if prod(sizes) > MAX_ELEMENTS:
            raise GraphError(
                f"tensor '{info.name}' claims {prod(sizes)} elements; wpk carries {MAX_ELEMENTS}",
                fix="give smaller sizes with --shapes, or export the model again",
            )
