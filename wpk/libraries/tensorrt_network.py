"""A description of a problem as a TensorRT network: one operator, its constants among the inputs.

TensorRT's builder is given what cuDNN is given, in layers. Products round their result to the type of their inputs before
the epilogue; what is described without a product is computed in fp32.
"""

from collections.abc import Sequence
from typing import Any

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
from wpk.libraries.tensorrt_layers import Pointwise, why_no_layers
from wpk.libraries.tensorrt_tensors import layout_of, why_not_dense
from wpk.nvinfer import Binding, TensorRTError, element_type_name

INPUT, OUTPUT = "input_{}", "output"
"""Names of the engine's tensors; inputs count from 0."""

_REDUCTIONS = {"ADD": "SUM", "AVG": "AVG", "MAX": "MAX", "MIN": "MIN", "MUL": "PROD"}


def why_no_network(description: Description) -> str | None:
    """Say why TensorRT cannot be asked for a description, in words; None if it can."""
    node = description.node
    inner = node.scores if isinstance(node, AttentionNode) else ()
    inner = node.steps if isinstance(node, ReductionNode) else inner
    if isinstance(node, NormNode) and not (node.method == "layernorm" and node.shifted):
        return f"TensorRT's normalisation has a scale and a shift, and is no {node.method} without"
    if isinstance(node, AttentionNode):
        queries, keys = (each.dims[1] for each in description.inputs[:2])
        if queries != keys:
            return (
                f"{queries} heads of queries share {keys} heads of keys, which its products do not"
            )
    return why_not_dense(description) or why_no_layers((*inner, *description.steps))


def add_operator(binding: Binding, network: Any, description: Description) -> list[Any]:
    """Add a description's layers, inputs and output to an empty network.

    Args:
        binding: Whose network it is.
        network: An INetworkDefinition, strongly typed.
        description: That `why_no_network` has nothing against.

    Returns:
        What must outlive the build.

    Raises:
        TensorRTError: TensorRT does not take a layer, or sees another output than is described.
    """
    return _Adding(binding, network, description).add()


class _Adding:
    def __init__(self, binding: Binding, network: Any, description: Description) -> None:
        self._binding, self._module = binding, binding.module
        self._network, self._description = network, description
        types = {each.dtype for each in (*description.inputs[2:], description.output)}
        has_product = isinstance(description.node, ConvolutionNode | MatmulNode | AttentionNode)
        self._of_epilogue = (
            description.inputs[0].dtype if has_product and DType.FP32 not in types else DType.FP32
        )
        self._pointwise = Pointwise(self._module, network, self._type(self._of_epilogue))

    def add(self) -> list[Any]:
        description = self._description
        tensors = [self._input(number, each) for number, each in enumerate(description.inputs)]
        first = len(tensors) - description.operands
        result = self._node(tensors[:first])
        result = self._pointwise.after(description.steps, [result, *tensors[first:]])
        self._output(self._pointwise.cast(result, self._type(description.output.dtype)))
        return self._pointwise.kept

    def _type(self, dtype: DType) -> Any:
        return getattr(self._module.DataType, element_type_name(dtype))

    def _input(self, number: int, like: GraphTensor) -> Any:
        network, layout = self._network, layout_of(like)
        tensor = network.add_input(INPUT.format(number), self._type(like.dtype), layout.shape)
        tensor.allowed_formats = self._formats(layout.format)
        if layout.order is None:
            return tensor
        back = tuple(layout.order.index(axis) for axis in range(len(like.dims)))
        return self._transposed(tensor, back)

    def _output(self, result: Any) -> None:
        network, like = self._network, self._description.output
        if tuple(result.shape) != like.dims:
            raise TensorRTError(
                f"{self._binding.title} computes {list(result.shape)} where {list(like.dims)} is asked for",
                fix="choose a generated kernel for this operator",
            )
        layout = layout_of(like)
        if layout.order is not None:
            result = self._transposed(result, layout.order)
        elif result.is_network_input:
            result = network.add_identity(result).get_output(0)
        result.name = OUTPUT
        network.mark_output(result)
        result.allowed_formats = self._formats(layout.format)

    def _formats(self, name: str) -> int:
        return 1 << int(getattr(self._module.TensorFormat, name))

    def _transposed(self, tensor: Any, order: tuple[int, ...]) -> Any:
        shuffle = self._network.add_shuffle(tensor)
        shuffle.first_transpose = self._module.Permutation(order)
        return shuffle.get_output(0)

    def _node(self, tensors: Sequence[Any]) -> Any:
        node = self._description.node
        match node:
            case ConvolutionNode():
                return self._convolution(node, *tensors)
            case MatmulNode():
                return self._product(*tensors)
            case NormNode():
                return self._norm(node, *tensors)
            case AttentionNode():
                return self._attention(node, *tensors)
            case SoftmaxNode(log):
                result = self._softmax(self._working(tensors[0]))
                return self._pointwise.unary("log", result) if log else result
            case ReductionNode():
                return self._reduction(node, tensors)
            case PointwiseNode():
                return None

    def _working(self, tensor: Any) -> Any:
        return self._pointwise.cast(tensor, self._type(self._of_epilogue))

    def _convolution(self, node: ConvolutionNode, image: Any, filters: Any) -> Any:
        network, module = self._network, self._module
        maps, extents = self._description.output.dims[1], tuple(filters.shape[2:])
        none = module.Weights()
        if node.backward:
            convolution = network.add_deconvolution_nd(image, maps, extents, none, none)
            groups = maps // filters.shape[1]
        else:
            convolution = network.add_convolution_nd(image, maps, extents, none, none)
            groups = image.shape[1] // filters.shape[1]
        convolution.set_input(1, filters)
        convolution.num_groups = groups
        convolution.pre_padding, convolution.post_padding = node.before, node.after
        convolution.stride_nd, convolution.dilation_nd = node.stride, node.dilation
        return convolution.get_output(0)

    def _product(self, one: Any, other: Any, *, transposed: bool = False) -> Any:
        kinds = self._module.MatrixOperation
        turned = kinds.TRANSPOSE if transposed else kinds.NONE
        layer = self._network.add_matrix_multiply(one, kinds.NONE, other, turned)
        return layer.get_output(0)

    def _norm(self, node: NormNode, x: Any, scale: Any, shift: Any) -> Any:
        rows = [self._working(each) for each in (x, scale, shift)]
        normalization = self._network.add_normalization(*rows, 1 << 1)
        normalization.epsilon = node.epsilon
        return normalization.get_output(0)

    def _attention(self, node: AttentionNode, q: Any, k: Any, v: Any, *operands: Any) -> Any:
        pointwise, dtype = self._pointwise, q.dtype
        scores = self._product(q, k, transposed=True)
        rank = len(q.shape)
        if node.scores:
            scores = pointwise.after(node.scores, [scores, *operands])
        else:
            scores = self._working(scores)
            if node.scale != 1.0:
                scores = pointwise.binary("mul", scores, pointwise.constant(node.scale, rank))
            if node.biased:
                scores = pointwise.binary("add", scores, self._working(operands[0]))
        return self._product(pointwise.cast(self._softmax(scores), dtype), v)

    def _softmax(self, tensor: Any) -> Any:
        softmax = self._network.add_softmax(tensor)
        softmax.axes = 1 << (len(tensor.shape) - 1)
        return softmax.get_output(0)

    def _reduction(self, node: ReductionNode, tensors: Sequence[Any]) -> Any:
        values = self._working(tensors[0])
        if node.steps:
            values = self._pointwise.after(node.steps, [None, *tensors])
        left = self._description.output.dims
        axes = sum(1 << axis for axis, n in enumerate(values.shape) if n != left[axis])
        operation = getattr(self._module.ReduceOperation, _REDUCTIONS[node.mode])
        return self._network.add_reduce(values, operation, axes, True).get_output(0)
