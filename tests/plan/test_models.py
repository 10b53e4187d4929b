"""Models in plans, which ONNX Runtime executes: what a damaged or hostile one gets."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.networks.fallback_models import LEFT_ALONE, MODELS
from support.plans.forged_plans import members, rewrite

import wpk
from wpk.candidate import Kind, Maker
from wpk.closed_models import ClosedModelError, read_closed_model
from wpk.dims import DimNode, DimOperation
from wpk.dtypes import DType
from wpk.errors import PlanError
from wpk.plan import KeptOutput
from wpk.plan.checks.models import check_models
from wpk.plan.checks.whole_plan import check_plan
from wpk.plan.plan import PlanBundle, Step
from wpk.plan.plan_file import read_plan

pytestmark = pytest.mark.usefixtures("warm_without_cubins")


@pytest.fixture(name="path", scope="module")
def fixture_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan with a kernel between two steps of ONNX Runtime, and an output of any shape."""
    folder = tmp_path_factory.mktemp("models")
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[30, 10] x) => (float[30, 10] y, int64[2, n] z) <int64[10] lens = {3, 2, 1, 1, 2, 3, 3, 2, 1, 1}>
        { a = ReverseSequence<time_axis = 0, batch_axis = 1> (x, lens)  r = Relu (a)
          y = ReverseSequence<time_axis = 0, batch_axis = 1> (r, lens)  z = NonZero (a) }"""
    )
    onnx.save(model, folder / "m.onnx")
    wpk.optimize(
        *(folder / "m.onnx", folder / "m.plan"),
        target="h200",
        search="static",
        check="off",
        skip_passes=LEFT_ALONE,
    )
    return folder / "m.plan"


@pytest.fixture(name="bundle")
def fixture_bundle(path: Path) -> PlanBundle:
    return read_plan(path)


def handed(bundle: PlanBundle) -> int:
    """The number of the step that has one input and one output in memory, and keeps nothing."""
    steps = bundle.plan.steps
    return next(i for i, s in enumerate(steps) if s.fallback and len(s.operator.outputs) == 1)


def with_step(bundle: PlanBundle, index: int, step: Step) -> PlanBundle:
    steps = (*bundle.plan.steps[:index], step, *bundle.plan.steps[index + 1 :])
    return replace(bundle, plan=replace(bundle.plan, steps=steps))


def with_problem(bundle: PlanBundle, **changes: Any) -> PlanBundle:
    index = handed(bundle)
    step = bundle.plan.steps[index]
    problem = replace(step.operator.problem, **changes)
    return with_step(bundle, index, replace(step, operator=replace(step.operator, problem=problem)))


def with_model(bundle: PlanBundle, change: Callable[[onnx.ModelProto], None]) -> PlanBundle:
    """The plan with another model in a step, by its own digest: as somebody who knows how would forge it."""
    problem = bundle.plan.steps[handed(bundle)].fallback
    assert problem is not None
    model = onnx.load_model_from_string(bundle.models[problem.model])
    change(model)
    data = model.SerializeToString()
    digest = hashlib.sha256(data).hexdigest()
    forged = with_problem(
        bundle, model=digest, operators=tuple(n.op_type for n in model.graph.node)
    )
    kept = {name: each for name, each in bundle.models.items() if name != problem.model}
    return replace(forged, models={**kept, digest: data})


def external(model: onnx.ModelProto) -> None:
    tensor = model.graph.initializer[0]
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


def inner_external(model: onnx.ModelProto) -> None:
    tensor = onnx.numpy_helper.from_array(np.ones(1, np.float32))
    external_model = onnx.ModelProto()
    external_model.graph.initializer.append(tensor)
    external(external_model)
    body = onnx.helper.make_graph(
        [onnx.helper.make_node("Constant", [], ["c"], value=external_model.graph.initializer[0])],
        "body",
        [],
        [onnx.helper.make_tensor_value_info("c", onnx.TensorProto.FLOAT, [1])],
    )
    node = onnx.helper.make_node("If", ["k"], ["m"], then_branch=body, else_branch=body)
    model.graph.node.append(node)


def foreign_domain(model: onnx.ModelProto) -> None:
    model.graph.node[0].domain = "com.microsoft"


def imported_domain(model: onnx.ModelProto) -> None:
    model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))


def old_opset(model: onnx.ModelProto) -> None:
    model.opset_import[0].version = 6


def functions(model: onnx.ModelProto) -> None:
    model.functions.add(name="f", domain="f")


def other_input(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE


def other_shape(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 11


def other_rank(model: onnx.ModelProto) -> None:
    del model.graph.output[0].type.tensor_type.shape.dim[1]


def sequence(model: onnx.ModelProto) -> None:
    kind = model.graph.output[0].type
    kind.sequence_type.elem_type.tensor_type.elem_type = onnx.TensorProto.FLOAT


def another_output(model: onnx.ModelProto) -> None:
    info = model.graph.output.add()
    info.CopyFrom(model.graph.output[0])
    info.name = model.graph.input[0].name


def same_name(model: onnx.ModelProto) -> None:
    model.graph.output.append(model.graph.output[0])


def unmade_input(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[1] = "nobody"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (external, "keeps tensor 'lens' in another file"),
        (inner_external, "in another file"),
        (foreign_domain, "calls com.microsoft::ReverseSequence, not ONNX's own"),
        (imported_domain, r"uses domains \['', 'com.microsoft'\]"),
        (old_opset, "uses opset 6"),
        (functions, "holds functions"),
        (other_input, r"problem.x\[0\]: is fp32, 'r' of the model fp64"),
        (other_shape, r"problem.x\[0\]: has shape \(30, 10\), 'r' of the model \(30, 11\)"),
        (other_rank, r"problem.results\[0\]: has shape \(30, 10\), 'y' of the model \(30,\)"),
        (sequence, "which is no tensor"),
        (another_output, "outputs: 1 names, the model has 2"),
        (same_name, "two outputs of one name"),
        (unmade_input, "is no valid ONNX model"),
    ],
)
def test_a_model_that_is_not_closed_or_not_its_steps_is_refused(
    bundle: PlanBundle, change: Callable[[onnx.ModelProto], None], message: str
) -> None:
    with pytest.raises(PlanError, match=message):
        check_models(with_model(bundle, change))


def test_an_unchanged_model_passes_these_checks(bundle: PlanBundle) -> None:
    check_models(with_model(bundle, lambda model: None))


def test_bytes_that_are_no_model_are_refused() -> None:
    for data in (b"", b"PK\x03\x04", bytes(range(256)) * 8):
        with pytest.raises(ClosedModelError):
            read_closed_model(data)


@pytest.mark.parametrize("name", MODELS)
def test_every_byte_that_is_lost_is_noticed(name: str) -> None:
    data = MODELS[name]().SerializeToString()
    read_closed_model(data)
    for cut in range(1, len(data), 7):
        try:
            read_closed_model(data[:cut])
        except ClosedModelError:
            continue
        assert onnx.load_model_from_string(data[:cut]).graph.ByteSize() <= len(data)


def test_a_damaged_member_is_noticed_by_its_digest(path: Path, tmp_path: Path) -> None:
    contents = members(path)
    name = next(each for each in contents if each.startswith("models/"))
    changed = tmp_path / "changed.plan"
    rewrite(changed, {**contents, name: contents[name][:-1] + b"\xff"})
    with pytest.raises(PlanError, match=r"models/[0-9a-f]{12}: [0-9a-f]{12}… is claimed"):
        read_plan(changed)


def test_a_missing_member_and_one_that_nothing_names_are_refused(
    path: Path, tmp_path: Path
) -> None:
    contents = members(path)
    name = next(each for each in contents if each.startswith("models/"))
    changed = tmp_path / "changed.plan"
    rewrite(changed, {each: data for each, data in contents.items() if each != name})
    with pytest.raises(PlanError, match=r"plan.models: not stored"):
        read_plan(changed)
    rewrite(changed, {**contents, f"models/{'0' * 64}.onnx": contents[name]})
    with pytest.raises(PlanError, match=r"stored but not named"):
        read_plan(changed)
    rewrite(changed, {**contents, "models/other.onnx": contents[name]})
    with pytest.raises(PlanError, match="which no plan has"):
        read_plan(changed)


def test_a_step_says_what_it_reads_and_writes(bundle: PlanBundle) -> None:
    index = handed(bundle)
    step = bundle.plan.steps[index]
    assert step.fallback is not None
    (given,), (result,) = step.fallback.x, step.fallback.results
    assert given is not None
    summed = DimNode(DimOperation.SUM, 9, 1)
    strided = replace(result, tensor=replace(result.tensor, strides=(1, 3), alignment=4))
    for changes, message in (
        ({"results": (strided,)}, r"results\[0\]: \(1, 3\) over \(30, 10\) is not row-major"),
        ({"results": (replace(result, inner=(11,), shape=(30, 11)),)}, r"results\[0\]|leave"),
        ({"x": (replace(given, inner=(2**31,)),)}, "2147483648 is not within"),
        ({"x": (replace(given, inner=(64,), shape=(30, 64)),)}, r"inputs\[0\]: the problem"),
        ({"x": (None,)}, r"inputs: 'r' is a value or a weight|stays in the machine's memory"),
        ({"x": ()}, "1 names, the problem has 0"),
        ({"results": ()}, r"'y' is a value or a weight"),
        ({"x": (replace(given, shape=()),)}, r"0.shape: \(\) is not as large as 300 elements"),
        ({"x": (replace(given, shape=(30, "n")),)}, "0.shape: free dimension 'n' has no value"),
        ({"x": (replace(given, shape=(30, summed)),)}, "0.shape: is more than products"),
    ):
        with pytest.raises(PlanError, match=message):
            check_plan(with_problem(bundle, **changes).plan)


def test_a_model_is_given_the_shape_that_it_has(bundle: PlanBundle) -> None:
    index = handed(bundle)
    (given,) = bundle.plan.steps[index].fallback.x
    split = with_problem(bundle, x=(replace(given, shape=(30, 5, 2)),))
    check_plan(split.plan)
    with pytest.raises(
        PlanError, match=r"x\[0\]: has shape \(30, 5, 2\), 'r' of the model \(30, 10\)"
    ):
        check_models(split)


def test_only_onnxruntime_executes_a_model_and_nothing_else(bundle: PlanBundle) -> None:
    index = handed(bundle)
    step = bundle.plan.steps[index]
    maker = Maker("cuDNN", "9", Kind.LIBRARY)
    other = replace(step, candidate=replace(step.candidate, maker=maker))
    with pytest.raises(PlanError, match=r"candidate.maker.kind: library for onnxruntime"):
        check_plan(with_step(bundle, index, other).plan)
    kernel = next(i for i, s in enumerate(bundle.plan.steps) if s.launches)
    runtime = replace(bundle.plan.steps[kernel], candidate=step.candidate)
    with pytest.raises(PlanError, match=r"candidate.maker.kind: runtime for element-wise"):
        check_plan(with_step(bundle, kernel, runtime).plan)
    launches = bundle.plan.steps[kernel].launches
    with pytest.raises(PlanError, match="launches: 1, and ONNX Runtime computes it"):
        check_plan(with_step(bundle, index, replace(step, launches=launches)).plan)


def test_what_is_kept_is_kept_before_it_is_used(bundle: PlanBundle) -> None:
    plan = bundle.plan
    assert [each.name for each in plan.kept_outputs] == ["z"]
    with pytest.raises(PlanError, match="kept_outputs: 'w' is used before it was kept"):
        check_plan(replace(plan, kept_outputs=(KeptOutput("w", DType.INT64),)))
    with pytest.raises(PlanError, match=r"plan.outputs: two are called 'y'"):
        check_plan(replace(plan, kept_outputs=(KeptOutput("y", DType.FP32),)))
