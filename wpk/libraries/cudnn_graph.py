"""A description as a graph of the cuDNN frontend, ready to be asked for plans."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from wpk.dtypes import DType
from wpk.libraries.cudnn_description import (
    AttentionNode,
    ConvolutionNode,
    Description,
    GraphTensor,
    MatmulNode,
    NormNode,
    PointwiseNode,
    ReductionNode,
    SoftmaxNode,
)
from wpk.libraries.cudnn_pointwise import PointwiseCall, PointwiseTensor

_TYPES = {DType.FP32: "FLOAT", DType.FP16: "HALF", DType.BF16: "BFLOAT16"}


def tensor_ids(description: Description) -> tuple[int, ...]:
    """The graph's numbers of the operator's inputs, in order, and of its output, the last."""
    return tuple(range(1, len(description.inputs) + 2))


def build_graph(cudnn: Any, handle: Any, description: Description) -> Any:
    """The ``cudnn.pygraph`` that computes a description; sums and all values between are fp32.

    Args:
        cudnn: The frontend.
        handle: Of cuDNN on the GPU.
        description: What to compute.
    """
    types = cudnn.data_type
    graph = cudnn.pygraph(
        handle=handle,
        io_data_type=getattr(types, _TYPES[description.inputs[0].dtype]),
        intermediate_data_type=types.FLOAT,
        compute_data_type=types.FLOAT,
    )
    *input_ids, output_id = tensor_ids(description)
    tensors = [
        graph.tensor(
            dim=list(tensor.dims),
            stride=list(tensor.strides),
            data_type=getattr(types, _TYPES[tensor.dtype]),
            uid=uid,
            name=f"input_{uid}",
        )
        for uid, tensor in zip(input_ids, description.inputs, strict=True)
    ]
    first = len(tensors) - description.operands
    result = _node(cudnn, graph, description, tensors[:first])
    if description.steps and isinstance(description.node, ConvolutionNode | ReductionNode):
        # A backward convolution's size has several solutions, and a reduction has the size it is given.
        _shape(result, description.output)
    result = _epilogue(cudnn, graph, description.steps, [result, *tensors[first:]])
    _shape(result, description.output)
    result.set_stride(list(description.output.strides))
    result.set_output(True).set_data_type(getattr(types, _TYPES[description.output.dtype]))
    result.set_uid(output_id)
    return graph


def _shape(tensor: Any, like: GraphTensor) -> None:
    tensor.set_dim(list(like.dims))


def _node(cudnn: Any, graph: Any, description: Description, tensors: Sequence[Any]) -> Any:
    match description.node:
        case ConvolutionNode(before, after, stride, dilation, backward):
            settings = {
                "pre_padding": list(before),
                "post_padding": list(after),
                "stride": list(stride),
                "dilation": list(dilation),
            }
            if backward:
                return graph.conv_dgrad(loss=tensors[0], filter=tensors[1], **settings)
            return graph.conv_fprop(image=tensors[0], weight=tensors[1], **settings)
        case MatmulNode():
            return graph.matmul(A=tensors[0], B=tensors[1])
        case NormNode(method, epsilon, shifted):
            return getattr(graph, method)(
                norm_forward_phase=cudnn.norm_forward_phase.INFERENCE,
                input=tensors[0],
                scale=tensors[1],
                bias=tensors[2] if shifted else None,
                epsilon=_constant(cudnn, graph, epsilon),
            )[0]
        case AttentionNode():
            return _attention(cudnn, graph, description.node, tensors)
        case SoftmaxNode(log):
            return _softmax(cudnn, graph, tensors[0], description.inputs[0], log)
        case ReductionNode(mode, steps):
            values = _epilogue(cudnn, graph, steps, [None, *tensors]) if steps else tensors[0]
            return graph.reduction(values, mode=getattr(cudnn.reduction_mode, mode))
        case PointwiseNode():
            return None


def _attention(cudnn: Any, graph: Any, node: AttentionNode, tensors: Sequence[Any]) -> Any:
    q, k, v, *operands = tensors
    settings: dict[str, Any] = {}
    if node.scores:
        # The node hands over a graph of its own to put the steps on.
        settings["score_mod"] = lambda inner, products: _epilogue(
            cudnn, inner, node.scores, [products, *operands]
        )
    else:
        settings["attn_scale"] = float(np.float32(node.scale))
        settings["bias"] = operands[0] if node.biased else None
    result, _statistics = graph.sdpa(q=q, k=k, v=v, generate_stats=False, **settings)
    return result


def _softmax(cudnn: Any, graph: Any, x: Any, like: GraphTensor, log: bool) -> Any:
    rows = (*like.dims[:-1], 1)
    strides = [prod(rows[axis + 1 :]) for axis in range(len(rows))]

    def reduced(values: Any, mode: Any) -> Any:
        result = graph.reduction(values, mode=mode)
        result.set_dim(list(rows))
        return result.set_stride(strides)

    below = graph.sub(x, reduced(x, cudnn.reduction_mode.MAX))
    powers = graph.exp(below)
    total = reduced(powers, cudnn.reduction_mode.ADD)
    return graph.sub(below, graph.log(total)) if log else graph.div(powers, total)


def _epilogue(cudnn: Any, graph: Any, steps: Sequence[PointwiseCall], values: list[Any]) -> Any:
    """The last value; each step adds one."""
    for step in steps:
        arguments = [
            values[argument.index]
            if isinstance(argument, PointwiseTensor)
            else _constant(cudnn, graph, argument)
            for argument in step.arguments
        ]
        values.append(getattr(graph, step.method)(*arguments, **dict(step.options)))
    return values[-1] if steps else values[0]


def _constant(cudnn: Any, graph: Any, number: float) -> Any:
    # The frontend makes a double of every number that fp32 does not hold exactly, and engines that
    # compute in fp32 then read half of it: x / 6 was infinite (frontend 1.32, cuDNN 9.19).
    return graph.tensor_scalar(float(np.float32(number)), cudnn.scalar_type.RUNTIME_PARAM)
