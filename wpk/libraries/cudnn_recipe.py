"""A description, an engine and its knobs as bytes that C++ makes an implementation of (docs/spec_format.md)."""

from wpk.candidate import Configuration
from wpk.libraries.cudnn_description import (
    ENGINE,
    GRAPH,
    AttentionNode,
    ConvolutionNode,
    Description,
    GraphTensor,
    MatmulNode,
    Node,
    NormNode,
    PointwiseNode,
    ReductionNode,
    SoftmaxNode,
)
from wpk.libraries.cudnn_pointwise import PointwiseCall, PointwiseTensor
from wpk.spec import SpecWriter, element_code

_TENSOR, _CONSTANT = 0, 1


def recipe_of(description: Description, configuration: Configuration) -> bytes:
    """Return the recipe of an implementation.

    Args:
        description: What is computed.
        configuration: Which engine computes it, with which knobs.

    Raises:
        ValueError: The configuration names no engine, or a number is none of 64 bits.
    """
    if ENGINE not in dict(configuration):
        raise ValueError("it names no engine")
    wide = next(
        (f"{name} = {value}" for name, value in configuration if abs(value) >= 1 << 63), None
    )
    if wide is not None:
        raise ValueError(f"{wide} is no number of 64 bits")
    return _Writing().written(description, configuration)


class _Writing:
    def __init__(self) -> None:
        self._out = SpecWriter(())

    def written(self, description: Description, configuration: Configuration) -> bytes:
        out, given = self._out, dict(configuration)
        del given[GRAPH]
        out.i64(given.pop(ENGINE))
        out.sequence(sorted(given.items()), self._knob)
        out.u8(description.strict)
        out.sequence(description.inputs, self._tensor)
        self._tensor(description.output)
        out.u32(description.operands)
        self._node(description.node)
        out.sequence(description.steps, self._step)
        return out.written()

    def _knob(self, knob: tuple[str, int]) -> None:
        self._out.text(knob[0])
        self._out.i64(knob[1])

    def _tensor(self, tensor: GraphTensor) -> None:
        self._out.u8(element_code(tensor.dtype))
        self._out.sequence(tensor.dims, self._out.i64)
        self._out.sequence(tensor.strides, self._out.i64)

    def _node(self, node: Node) -> None:
        out = self._out
        match node:
            case ConvolutionNode(before, after, stride, dilation, backward):
                out.u8(0)
                for value in (*before, *after, *stride, *dilation):
                    out.i64(value)
                out.u8(backward)
            case MatmulNode():
                out.u8(1)
            case NormNode(method, epsilon, shifted):
                out.u8(2)
                out.text(method)
                out.f64(epsilon)
                out.u8(shifted)
            case AttentionNode(scale, biased, scores):
                out.u8(3)
                out.f64(scale)
                out.u8(biased)
                out.sequence(scores, self._step)
            case SoftmaxNode(log):
                out.u8(4)
                out.u8(log)
            case ReductionNode(mode, steps):
                out.u8(5)
                out.text(mode)
                out.sequence(steps, self._step)
            case PointwiseNode():
                out.u8(6)

    def _step(self, step: PointwiseCall) -> None:
        self._out.text(step.method)
        self._out.sequence(step.arguments, self._argument)
        self._out.sequence(step.options, self._option)

    def _argument(self, argument: PointwiseTensor | float) -> None:
        if isinstance(argument, PointwiseTensor):
            self._out.u8(_TENSOR)
            self._out.u32(argument.index)
        else:
            self._out.u8(_CONSTANT)
            self._out.f64(argument)

    def _option(self, option: tuple[str, float]) -> None:
        self._out.text(option[0])
        self._out.f64(option[1])
