"""Operators cut out of models, in TensorRT's formats, optimized alone, as specs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.networks import handwritten
from support.networks.small_models import expected
from support.plans.candidates import library_call

import wpk
from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.launch import EARLY_LAUNCH, InputArgument, TensorMapArgument
from wpk.libraries import constant_shape, find_library
from wpk.lowering.model import lower_model
from wpk.nvinfer import TensorRTError
from wpk.plan import PlanBundle
from wpk.spec import Format, LibraryCall, operator_bytes
from wpk.target_features import TargetFeatures
from wpk.tensorrt import exported
from wpk.tensorrt.operators import Built, forms_of, operator_model, plugin_operator

NETWORK = "squeeze_excite"

WORKSPACE = 4096
"""Of a call of cuDNN."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> onnx.ModelProto:
    folder = tmp_path_factory.mktemp("network")
    path = handwritten.write(NETWORK, folder)
    return exported(
        lower_model(
            path, {}, Precision.FP16, ("channels-last",), features=TargetFeatures(clusters=False)
        ).graph
    )


def operators(model: onnx.ModelProto) -> list[str]:
    return sorted({node.name.split("/")[0] for node in model.graph.node if "/" in node.name})


@pytest.fixture
def planned(tmp_path: Path, one_cubin: None) -> Callable[[onnx.ModelProto], PlanBundle]:
    def plan(model: onnx.ModelProto, check: str = "off") -> PlanBundle:
        path = tmp_path / "operator.onnx"
        onnx.save(model, path)
        options = {"target": "h200", "precision": "fp16", "search": "static", "check": check}
        return wpk.optimize(path, tmp_path / "operator.plan", **options)

    return plan


def test_the_operators_together_are_the_model(model: onnx.ModelProto) -> None:
    cut = [operator_model(model, each) for each in operators(model)]
    for each in cut:
        onnx.checker.check_model(each, full_check=True)
    assert sum(len(each.graph.node) for each in cut) == len(
        [node for node in model.graph.node if "/" in node.name]
    )
    made = {port.name for each in cut for port in each.graph.output}
    given = {port.name for port in model.graph.input}
    for each in cut:
        assert {port.name for port in each.graph.input} <= made | given


def test_an_operator_that_is_not_there_is_refused(model: onnx.ModelProto) -> None:
    with pytest.raises(ValueError, match="no operator 'nothing'"):
        operator_model(model, "nothing")


def test_channels_last_computes_the_same(model: onnx.ModelProto, tmp_path: Path) -> None:
    linear, last = forms_of(operator_model(model, "conv_hardswish_0"))
    assert set(linear.formats) == {Format.LINEAR}
    assert last.formats == (Format.HWC, Format.HWC8)
    x = np.random.default_rng(0).standard_normal((2, *_extents(linear.model)[1:]))
    paths = [tmp_path / "linear.onnx", tmp_path / "last.onnx"]
    for path, form in zip(paths, (linear, last), strict=True):
        onnx.save(form.model, path)
    name = linear.model.graph.input[0].name
    (one,) = expected(paths[0], {name: x.astype(np.float32)}).values()
    turned = np.ascontiguousarray(x.transpose(0, 2, 3, 1).astype(np.float32))
    (other,) = expected(paths[1], {name: turned}).values()
    np.testing.assert_array_equal(other.transpose(0, 3, 1, 2), one)


def _extents(model: onnx.ModelProto) -> list[int]:
    return [each.dim_value for each in model.graph.input[0].type.tensor_type.shape.dim]


def test_vectors_that_channels_do_not_fill_are_not_offered() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float16[1, 12, 5, 5] x) => (float16[1, 12, 5, 5] y) { y = Relu(x) }
    """
    (only,) = forms_of(onnx.parser.parse_model(text))
    assert only.formats == (Format.LINEAR, Format.LINEAR)


@pytest.mark.parametrize("name", ["conv_hardswish_0", "conv_relu_2", "mul_5"])
def test_an_operator_in_both_forms_is_one_plugin(
    model: onnx.ModelProto, planned: Callable[..., PlanBundle], name: str
) -> None:
    forms = forms_of(operator_model(model, name))
    built = [Built(form.formats, planned(form.model, "quick")) for form in forms]
    operator = plugin_operator(name, built)
    spec, activations = operator.spec, len(forms[0].model.graph.input)
    assert not operator.left_out
    assert [each.shape for each in spec.inputs[activations:]] == [
        each.array.shape for each in operator.weights
    ]
    assert {each.formats[:activations] for each in spec.variants} == {
        each.formats[:activations] for each in forms
    }
    early = [EARLY_LAUNCH in each.launches[0].attributes for each in spec.variants]
    assert early == [True, False] * len(forms)
    for variant in spec.variants:
        assert len(variant.formats) == len(spec.inputs) + len(spec.outputs)
        arguments = [one for launch in variant.launches for one in launch.arguments]
        read = {a.index for a in arguments if isinstance(a, InputArgument | TensorMapArgument)}
        assert read == set(range(len(spec.inputs)))
    assert operator_bytes(spec)


def test_shapes_are_onnxs_and_follow_the_batch(
    model: onnx.ModelProto, planned: Callable[..., PlanBundle]
) -> None:
    forms = forms_of(operator_model(model, "conv_hardswish_0"))
    operator = plugin_operator("c", [Built(f.formats, planned(f.model)) for f in forms])
    (dimension,) = operator.spec.dimensions
    assert (dimension.input, dimension.axis) == (0, 0)
    x, y = operator.spec.inputs[0], operator.spec.outputs[0]
    assert (x.dtype, y.dtype) == (DType.FP32, DType.FP16)
    assert [x.shape[0], y.shape[0]] == [dimension.name] * 2
    assert x.shape[1:] == tuple(_extents(forms[0].model)[1:])


def test_what_takes_several_steps_is_no_plugin(
    planned: Callable[..., PlanBundle],
) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float16[2, 64] x) => (float16[2, 64] y)
    { a = Softmax<axis = 1>(x) b = Softmax<axis = 0>(a) y = Softmax<axis = 1>(b) }
    """
    bundle = planned(onnx.parser.parse_model(text))
    with pytest.raises(TensorRTError, match="it takes 3 steps"):
        plugin_operator("s", [Built((Format.LINEAR, Format.LINEAR), bundle)])


def test_every_operator_of_the_network_has_a_plugin(
    model: onnx.ModelProto, planned: Callable[..., PlanBundle]
) -> None:
    assert len(operators(model)) == 6
    for name in operators(model):
        form = forms_of(operator_model(model, name))[0]
        assert plugin_operator(name, [Built(form.formats, planned(form.model))]).spec.variants


@pytest.mark.parametrize(("channels", "wider"), [(32, True), (24, False)])
def test_full_vectors_of_sixteen_channels_are_offered_too(
    planned: Callable[..., PlanBundle], channels: int, wider: bool
) -> None:
    shape = f"float16[2, {channels}, 5, 7]"
    text = f"""<ir_version: 8, opset_import: ["" : 17]> g ({shape} x) => ({shape} y) {{ y = Sigmoid(x) }}"""
    forms = forms_of(onnx.parser.parse_model(text))
    spec = plugin_operator("s", [Built(f.formats, planned(f.model)) for f in forms]).spec
    launches = {variant.formats: variant.launches for variant in spec.variants}
    assert ((Format.HWC16,) * 2 in launches) == wider
    if wider:
        assert launches[(Format.HWC16,) * 2] == launches[(Format.HWC8,) * 2]


def test_each_form_reads_its_own_packing(
    model: onnx.ModelProto, planned: Callable[..., PlanBundle]
) -> None:
    forms = forms_of(operator_model(model, "conv_hardswish_0"))
    first, second = (Built(form.formats, planned(form.model)) for form in forms)
    same = plugin_operator("c", [first, second])
    other = {name: array + 1 for name, array in second.bundle.weights.items()}
    apart = plugin_operator(
        "c", [first, replace(second, bundle=replace(second.bundle, weights=other))]
    )
    assert len(apart.weights) == 2 * len(same.weights)
    reads = [
        {a.index for launch in v.launches for a in launch.arguments if hasattr(a, "index")} - {0}
        for v in apart.spec.variants
        if EARLY_LAUNCH in v.launches[0].attributes
    ]
    assert reads[0].isdisjoint(reads[1])
    for variant in apart.spec.variants:
        assert len(variant.formats) == len(apart.spec.inputs) + len(apart.spec.outputs)
    assert operator_bytes(apart.spec)


def test_what_a_library_computes_is_a_tactic_with_its_own_packing(
    planned: Callable[..., PlanBundle], tmp_path: Path
) -> None:
    path = handwritten.write("dense_concat", tmp_path)
    model = exported(lower_model(path, {}, Precision.FP16, ("channels-last",)).graph)
    forms = forms_of(operator_model(model, "conv_relu_0"))
    built = [Built(form.formats, planned(form.model)) for form in forms]
    called = [Built(each.formats, by_cudnn(each.bundle)) for each in built]
    both = [each for pair in zip(built, called, strict=True) for each in pair]
    operator = plugin_operator("c", both, built[0].bundle.plan)
    spec = operator.spec
    calls = [variant for variant in spec.variants if isinstance(variant.work, LibraryCall)]
    assert not operator.left_out
    assert {each.formats[:1] for each in calls} == {each.formats[:1] for each in spec.variants}
    for variant, each in zip(calls, called, strict=False):
        assert isinstance(variant.work, LibraryCall)
        assert (variant.work.library, variant.work.version) == ("cuDNN", "9.19.0")
        assert variant.work.workspace_bytes == WORKSPACE
        read = [spec.inputs[number] for number in variant.work.inputs]
        assert len(read) == len(each.bundle.plan.steps[0].inputs)
        packed = operator.weights[variant.work.inputs[1] - len(each.bundle.plan.inputs)]
        (weights,) = (w for w in each.bundle.weights.values() if w.ndim == 4)
        assert (packed.array == weights).all()
    assert operator_bytes(spec)


def by_cudnn(bundle: PlanBundle) -> PlanBundle:
    """The plan with its only step computed by cuDNN, as a search that measures might have it."""
    plan = bundle.plan
    (step,) = plan.steps
    problem = replace(step.operator.problem, n=Extent(step.operator.problem.n.value))
    configuration = (("graph", 0), ("engine", 17))
    layout = find_library("cuDNN").constant_layout(problem, configuration)
    packed = dict(bundle.weights)
    name = next(name for name in step.inputs if name in plan.weights)
    packed[name] = np.zeros(constant_shape(problem), np.float16)
    weight = replace(plan.weights[name], packing=layout, shape=packed[name].shape)
    candidate = library_call(configuration, version="9.19.0")
    operator = replace(step.operator, problem=problem)
    call = replace(
        step, operator=operator, candidate=candidate, launches=(), workspace_bytes=WORKSPACE
    )
    weights = {**plan.weights, name: weight}
    return replace(bundle, plan=replace(plan, steps=(call,), weights=weights), weights=packed)
