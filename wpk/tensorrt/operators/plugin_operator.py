"""From plans of one operator, each in a form, to the operator's spec and the constants that its plugin reads."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import DType
from wpk.launch import EARLY_LAUNCH, Argument, InputArgument, Launch, TensorMapArgument
from wpk.libraries import CUDNN
from wpk.nvinfer import TensorRTError
from wpk.plan import Plan, PlanBundle, Port, Step, work_of
from wpk.spec import (
    Dimension,
    Format,
    LibraryCall,
    OperatorSpec,
    SpecKernel,
    SpecTensor,
    Variant,
)

_CHANNELS, _WIDE = 1, 16


@dataclass(frozen=True)
class Built:
    """A form of an operator, optimized.

    Attributes:
        formats: Of its inputs and then of its outputs, packed constants excepted.
        bundle: The plan of the form's model.
    """

    formats: tuple[Format, ...]
    bundle: PlanBundle


@dataclass(frozen=True)
class Packed:
    """A constant as kernels read it: its element type, and its values as they are stored."""

    dtype: DType
    array: NDArray[np.generic]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for constants that one input can serve."""
        return self.dtype, self.array.shape, self.array.tobytes()


@dataclass(frozen=True)
class PluginOperator:
    """An operator as a plugin.

    Attributes:
        spec: What the plugin holds.
        weights: Its packed constants, inputs behind the activations, in their order.
        left_out: Formats of forms that are not among its variants, and why.
    """

    spec: OperatorSpec
    weights: tuple[Packed, ...]
    left_out: tuple[tuple[tuple[Format, ...], str], ...]


def plugin_operator(name: str, forms: Sequence[Built], shown: Plan | None = None) -> PluginOperator:
    """Put an operator's forms together: what computes each, kernels or cuDNN, is a tactic of the plugin.

    A form may pack the constants otherwise than another: every packing is an input, which the variants of other forms do
    not read. A kernel that may begin before the one in front of it has ended is two variants, with and without, since
    what is in front of it is TensorRT's.

    Args:
        name: Of the operator.
        forms: At least one; of a form there may be several plans.
        shown: A plan of the operator in the linear format, which tells shapes as ONNX does; by default that of the
            first form.

    Raises:
        TensorRTError: No form is computed by one step; says for each why.
    """
    left_out = [(form.formats, why) for form in forms if (why := _why_not(form.bundle.plan))]
    fitting = [form for form in forms if not _why_not(form.bundle.plan)]
    if not fitting:
        raise TensorRTError(
            f"operator '{name}' cannot be a plugin: " + "; ".join(why for _, why in left_out),
            fix="leave it to TensorRT",
        )
    shown = shown or forms[0].bundle.plan
    packed = list({each.key: each for form in fitting for each in _packed(form.bundle)}.values())
    variants: list[Variant] = []
    kernels: dict[str, SpecKernel] = {}
    for form in fitting:
        for each in (form, *_in_wider_vectors(form, shown)):
            variants += _variants(each, packed)
        kernels |= _kernels(form.bundle)
    spec = OperatorSpec(
        name=name,
        dimensions=_dimensions(shown),
        inputs=(*map(_tensor, shown.inputs), *(_constant(each) for each in packed)),
        outputs=tuple(map(_tensor, shown.outputs)),
        kernels=tuple(kernels.values()),
        variants=tuple(variants),
    )
    return PluginOperator(spec, tuple(packed), tuple(left_out))


def _why_not(plan: Plan) -> str:
    """Why a plan is no variant; empty where it is one."""
    if len(plan.steps) != 1:
        names = ", ".join(step.operator.name for step in plan.steps)
        return f"it takes {len(plan.steps)} steps ({names}), a plugin is one"
    (step,) = plan.steps
    if step.image is not None and step.image.library != CUDNN:
        return f"{step.image.library} computes it, and a plugin calls {CUDNN} only"
    if len(plan.outputs) != len(step.operator.outputs):
        return f"it gives {len(plan.outputs)} tensors, and its kernels write {len(step.operator.outputs)}"
    outside = [name for name in (*step.inputs, *step.operator.outputs) if name in plan.values]
    padded = [name for name in outside if not _is_dense(plan, name)]
    return f"its kernels read {', '.join(padded)} otherwise than dense" if padded else ""


def _is_dense(plan: Plan, name: str) -> bool:
    value = plan.values[name]
    step, expected = 1, []
    for extent in reversed(value.shape):
        expected.append(step)
        step *= extent
    is_row_major = all(
        stride == dense or extent == 1
        for stride, dense, extent in zip(
            value.strides, reversed(expected), value.shape, strict=True
        )
    )
    return is_row_major and not value.padding and not value.offset


def _packed(bundle: PlanBundle) -> list[Packed]:
    plan = bundle.plan
    names = _weight_names(plan, plan.steps[0])
    return [Packed(plan.weights[name].dtype, bundle.weights[name]) for name in names]


def _weight_names(plan: Plan, step: Step) -> list[str]:
    return list(dict.fromkeys(name for name in step.inputs if name in plan.weights))


def _variants(form: Built, packed: Sequence[Packed]) -> list[Variant]:
    """What computes the form; and its launches waiting for what is in front, where they might not."""
    plan = form.bundle.plan
    (step,) = plan.steps
    numbers = _numbers(form.bundle, packed)
    count = len(plan.inputs)
    formats = (*form.formats[:count], *(Format.LINEAR,) * len(packed), *form.formats[count:])
    candidate = step.candidate
    said = " ".join(f"{name}={value}" for name, value in candidate.configuration)
    name = f"{candidate.maker.name} {said}"
    work = work_of(step)
    if isinstance(work, LibraryCall):
        inputs = tuple(numbers[number] for number in work.inputs)
        return [Variant(name, formats, replace(work, inputs=inputs))]
    launches = tuple(_renumbered(launch, numbers) for launch in work)
    variants = [Variant(name, formats, launches)]
    first, *others = launches
    if EARLY_LAUNCH in first.attributes:
        waiting = replace(
            first, attributes=tuple(each for each in first.attributes if each != EARLY_LAUNCH)
        )
        variants.append(Variant(f"{name} (waits)", formats, (waiting, *others)))
    return variants


def _in_wider_vectors(form: Built, shown: Plan) -> Iterator[Built]:
    """The form again in vectors of 16 channels, where they are full: its tensors then lie just so."""
    ports = (*shown.inputs, *shown.outputs)
    vectors = [port for port, each in zip(ports, form.formats, strict=True) if each is Format.HWC8]
    if vectors and all(
        port.dtype is DType.FP16 and int(str(port.shape[_CHANNELS])) % _WIDE == 0
        for port in vectors
    ):
        wider = {Format.HWC8: Format.HWC16}
        yield replace(form, formats=tuple(wider.get(each, each) for each in form.formats))


def _numbers(bundle: PlanBundle, packed: Sequence[Packed]) -> Mapping[int, int]:
    """The plugin's inputs, by the step's."""
    plan = bundle.plan
    (step,) = plan.steps
    ports = [port.name for port in plan.inputs]
    keys = [each.key for each in packed]
    weights = {
        name: len(ports) + keys.index(each.key)
        for name, each in zip(_weight_names(plan, step), _packed(bundle), strict=True)
    }
    buffers = {plan.values[port].buffer: number for number, port in enumerate(ports)}
    return {
        number: weights[name] if name in weights else buffers[plan.values[name].buffer]
        for number, name in enumerate(step.inputs)
    }


def _renumbered(launch: Launch, numbers: Mapping[int, int]) -> Launch:
    def argument(each: Argument) -> Argument:
        if isinstance(each, InputArgument | TensorMapArgument):
            return replace(each, index=numbers[each.index])
        return each

    return replace(launch, arguments=tuple(map(argument, launch.arguments)))


def _kernels(bundle: PlanBundle) -> dict[str, SpecKernel]:
    plan = bundle.plan
    return {
        digest: SpecKernel(digest, kernel.entry, plan.arch, bundle.cubins[digest])
        for digest, kernel in sorted(plan.kernels.items())
    }


def _dimensions(plan: Plan) -> tuple[Dimension, ...]:
    """Each free dimension, where an input has it as an extent."""
    found: dict[str, Dimension] = {}
    for number, port in enumerate(plan.inputs):
        for axis, extent in enumerate(port.shape):
            if isinstance(extent, str):
                found.setdefault(extent, Dimension(extent, number, axis))
    return tuple(found.values())


def _tensor(port: Port) -> SpecTensor:
    return SpecTensor(port.dtype, port.shape)


def _constant(packed: Packed) -> SpecTensor:
    return SpecTensor(packed.dtype, packed.array.shape)
