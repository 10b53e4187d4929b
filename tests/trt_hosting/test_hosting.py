"""From a model to an engine that hosts generated kernels, with a simulated TensorRT and GPU of ours."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from support.networks import handwritten
from trt_hosting.host_gpu import HostGpu
from trt_hosting.simulated_tensorrt import PLUGIN, Plan, simulated_tensorrt

import wpk
from wpk.dtypes import Precision
from wpk.errors import TargetError, VerificationError, WpkError
from wpk.lowering.model import lower_model
from wpk.nvinfer import EngineCalls, TensorRTError, binding_of
from wpk.options import TensorRTOptions
from wpk.report import engine_text, plain_text
from wpk.target_features import TargetFeatures
from wpk.targets import find_target
from wpk.tensorrt import exported
from wpk.tensorrt.hosting import with_plugins
from wpk.tensorrt_pipeline import TensorRTOutcome, optimize_tensorrt
from wpk.tensorrt_pipeline.plugins import make_plugins

pytestmark = pytest.mark.usefixtures("warm_without_cubins")

NETWORK = "squeeze_excite"
Hosting = Callable[..., TensorRTOutcome]


class TimedCalls(EngineCalls):
    """Also tells the simulated time."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    @property
    def seconds(self) -> float:
        return self._plan.seconds


def planned(name: str, folder: Path, precision: Precision = Precision.FP32) -> Plan:
    graph = lower_model(
        handwritten.write(name, folder), {}, precision, features=TargetFeatures(clusters=False)
    ).graph
    return Plan(plain=exported(graph))


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return planned(NETWORK, tmp_path)


@pytest.fixture
def hosting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plan: Plan) -> Hosting:
    """Ask for an engine for an H200 that is here."""
    module = simulated_tensorrt(plan)
    target = find_target("h200")
    room = "wpk.tensorrt_pipeline"
    monkeypatch.setattr(f"{room}.optimize.find_binding", lambda: binding_of(module, rtx=False))
    monkeypatch.setattr(f"{room}.optimize.choose_target", lambda name, precision: target)
    monkeypatch.setattr(f"{room}.job.choose_target", lambda name, precision: target)
    monkeypatch.setattr(f"{room}.hosting.CudaDevice", HostGpu)
    monkeypatch.setattr(f"{room}.hosting.EngineCalls", lambda: TimedCalls(plan))
    library = tmp_path / "libwpk_tensorrt.so"
    library.touch()

    def ask(name: str = NETWORK, library: Path = library, **options: Any) -> TensorRTOutcome:
        ports = onnx.load(tmp_path / f"{name}.onnx").graph.input
        sizes = {p.name: [d.dim_value for d in p.type.tensor_type.shape.dim[1:]] for p in ports}
        shapes = {each: [[n, *rest] for n in (1, 2, 3)] for each, rest in sizes.items()}
        asked = {
            "shapes": shapes,
            "search": "static",
            "target": "h200",
            "check": "quick",
            **options,
        }
        return optimize_tensorrt(
            tmp_path / f"{name}.onnx",
            tmp_path / "model.plan",
            tensorrt=TensorRTOptions(plugin_library=library),
            **asked,
        )

    return ask


def test_the_faster_of_both_is_in_the_engine(hosting: Hosting, plan: Plan, tmp_path: Path) -> None:
    plan.plugin = {"conv_hardswish_0": 2.0, "conv_4": 90.0}
    outcome = hosting()
    told = json.loads((tmp_path / "model.plan.json").read_text())
    assert told == json.loads(json.dumps(outcome.description))
    engine = onnx.load_model_from_string((tmp_path / "model.plan").read_bytes()[4:])
    inside = {node.name for node in engine.graph.node if node.op_type == PLUGIN}
    assert inside == set(told["choices"]["replaced"])
    assert "conv_hardswish_0" in inside
    assert "conv_4" not in inside
    (group,) = (g for g in told["choices"]["groups"] if g["operators"] == ["conv_hardswish_0"])
    assert plan.plain is not None
    own = [node for node in plan.plain.graph.node if node.name.startswith("conv_hardswish_0/")]
    assert group["native_seconds"] == pytest.approx(len(own) * 10e-6)
    assert group["plugin_seconds"] == pytest.approx(2e-6)
    assert {check["outcome"] for check in told["checks"]} == {"ok"}
    assert not set(told["no_plugin"]) & inside


def test_what_tensorrt_timed_is_told_per_operator(
    hosting: Hosting, plan: Plan, tmp_path: Path
) -> None:
    """Its own implementations, and the tactics of plugins, which are generated kernels and cuDNN's."""
    plan.plugin = {"conv_hardswish_0": 2.0, "conv_4": 90.0}
    outcome = hosting()
    assert outcome.description is not None
    tuned = {each["name"]: each for each in outcome.description["tuned"]}
    engine = onnx.load_model_from_string((tmp_path / "model.plan").read_bytes()[4:])
    assert tuned.keys() == {node.name for node in engine.graph.node}
    plugin = tuned["conv_hardswish_0"]
    assert plugin["operators"] == ["conv_hardswish_0"]
    assert [each["seconds"] for each in plugin["tactics"]] == pytest.approx([4e-6, 3e-6])
    native = [each for each in tuned.values() if each["operators"] == ["conv_4"]]
    assert native
    assert all(each["tactics"][1]["kernel"] == "native 2" for each in native)
    shown = plain_text(*engine_text(outcome.description))
    (line,) = (each for each in shown.splitlines() if "of a plugin 2" in each and "_0" in each)
    assert line.split()[:3] == ["conv_hardswish_0", "conv_hardswish_0", "2"]
    assert line.endswith("3.0")


def test_an_engine_that_computes_something_else_is_not_written(
    hosting: Hosting, plan: Plan, tmp_path: Path
) -> None:
    plan.wrong = 0.1
    with pytest.raises(VerificationError, match="does not compute what the model does"):
        hosting()
    assert not list(tmp_path.glob("model.plan*"))


def test_what_tensorrt_does_not_know_is_a_plugin(hosting: Hosting, plan: Plan) -> None:
    plan.refused = frozenset({"HardSwish"})
    plan.plugin = {"conv_hardswish_0": 900.0}
    outcome = hosting()
    assert outcome.description is not None
    choices = outcome.description["choices"]
    assert "conv_hardswish_0" in choices["replaced"]
    (group,) = (g for g in choices["groups"] if g["operators"] == ("conv_hardswish_0",))
    assert group["why"] == "TensorRT has no implementation"


def test_a_plugin_that_is_not_built_is_left_out(hosting: Hosting, plan: Plan) -> None:
    plan.unbuildable = frozenset({"conv_hardswish_0"})
    outcome = hosting()
    assert outcome.description is not None
    assert "conv_hardswish_0" not in outcome.description["choices"]["replaced"]
    assert outcome.description["choices"]["replaced"]


def test_without_plugins_the_engine_is_tensorrts_own(hosting: Hosting, plan: Plan) -> None:
    outcome = hosting(library=Path("none"))
    assert plan.built == [frozenset()]
    assert outcome.description is not None
    assert outcome.description["choices"]["replaced"] == ()


def test_no_library_and_a_missing_one_are_refused(hosting: Hosting, tmp_path: Path) -> None:
    with pytest.raises(TensorRTError, match="there is no plugin library") as error:
        hosting(library=tmp_path / "other.so")
    assert "cmake" in error.value.fix
    with pytest.raises(TensorRTError, match="no plugin library is given"):
        hosting(library=None)


def test_another_gpu_than_the_target_is_refused(
    hosting: Hosting, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = {"auto": find_target("a100"), "h200": find_target("h200")}
    for module in ("optimize", "job"):
        monkeypatch.setattr(
            f"wpk.tensorrt_pipeline.{module}.choose_target", lambda name, precision: targets[name]
        )
    with pytest.raises(TargetError, match="builds for the GPU that it finds"):
        hosting()


def test_plugin_nodes_read_what_the_operator_reads_and_its_constants(
    plan: Plan, tmp_path: Path
) -> None:
    model = plan.plain
    assert model is not None

    def optimizing(path: Path, output: Path) -> Any:
        return [wpk.optimize(path, output, target="h200", search="static", check="off")]

    made, refused = make_plugins(model, ["conv_4", "mul_5"], optimizing, lambda *told: None)
    assert not refused
    replaced = with_plugins(model, made)
    onnx.checker.check_model(replaced)
    node = next(each for each in replaced.graph.node if each.name == "conv_4")
    assert node.domain == "wpk"
    read = {tensor.name: tensor for tensor in replaced.graph.initializer}
    packed = [name for name in node.input if name in read]
    assert packed == [f"conv_4/packed.{i}" for i in range(len(made["conv_4"].weights))]
    weight = onnx.numpy_helper.to_array(read[packed[0]])
    assert (weight == made["conv_4"].weights[0].array).all()
    left = {name for each in replaced.graph.node for name in each.input}
    assert set(read) <= left, "constants that nobody reads any more are dropped"
    with pytest.raises(ValueError, match="no operators"):
        with_plugins(model, {"nothing": made["conv_4"]})


def test_what_an_operator_cannot_be_is_told(plan: Plan) -> None:
    def refusing(path: Path, output: Path) -> Any:
        raise WpkError("it is too odd", fix="none")

    assert plan.plain is not None
    made, refused = make_plugins(plan.plain, ["conv_4"], refusing, lambda *told: None)
    assert not made
    assert "it is too odd" in refused["conv_4"]


@pytest.mark.parametrize(
    "name",
    [
        "rows",
        "bert_with_mask",  # and an embedding
        pytest.param("embedding", marks=pytest.mark.exhaustive),
        pytest.param("mobilenet_v3", marks=pytest.mark.exhaustive),  # convolutions are NETWORK's
    ],
)
def test_networks_of_other_kinds_go_the_same_way(
    hosting: Hosting, plan: Plan, tmp_path: Path, name: str
) -> None:
    plan.plain = planned(name, tmp_path, Precision.FP16).plain
    outcome = hosting(name, precision="fp16")
    told = outcome.description
    assert told is not None
    assert not told["no_plugin"]
    assert told["choices"]["replaced"]
    assert {check["outcome"] for check in told["checks"]} == {"ok"}
