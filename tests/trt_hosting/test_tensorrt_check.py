"""``scripts/tensorrt_check`` with a simulated TensorRT and GPU of ours: each route is tried, and what is wrong is told."""

import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx
import pytest
from trt_hosting.host_gpu import HostGpu
from trt_hosting.simulated_tensorrt import Plan, simulated_tensorrt
from trt_hosting.test_hosting import TimedCalls

from wpk.errors import EngineError
from wpk.nvinfer import binding_of
from wpk.targets import find_target
from wpk.tensorrt_pipeline import hosting, job, optimize

pytestmark = pytest.mark.usefixtures("one_cubin")

SCRIPT = Path(__file__).parents[2] / "scripts" / "tensorrt_check"


@pytest.fixture
def script() -> ModuleType:
    loader = SourceFileLoader("tensorrt_check", str(SCRIPT))
    spec = spec_from_loader("tensorrt_check", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def here(script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Plan:
    """A machine with an H200 and a TensorRT, which computes whatever model it was given last."""
    plan = Plan()
    binding = binding_of(simulated_tensorrt(plan), rtx=False)
    target = find_target("h200")
    gpu = type("Gpu", (), {"name": "double", "driver": "none"})()
    real = script.exported

    def exported(graph: Any) -> onnx.ModelProto:
        plan.plain = real(graph)
        return plan.plain

    for module in (script, optimize):
        monkeypatch.setattr(module, "find_binding", lambda: binding)
        monkeypatch.setattr(module, "exported", exported)
    for module in (script, hosting):
        monkeypatch.setattr(module, "CudaDevice", HostGpu)
        monkeypatch.setattr(module, "EngineCalls", lambda: TimedCalls(plan))
    for module in (script, optimize, job):
        monkeypatch.setattr(module, "choose_target", lambda name, precision: target)
    monkeypatch.setattr(script, "read_gpu", lambda: gpu)
    made = script.wpk.optimize
    monkeypatch.setattr(
        script.wpk,
        "optimize",
        lambda *paths, **o: made(*paths, **{**o, "target": "h200", "check": "off"}),
    )
    monkeypatch.setattr(
        script,
        "optimize_tensorrt",
        lambda *paths, **o: optimize.optimize_tensorrt(
            *paths, **{**o, "search": "static", "check": "quick"}
        ),
    )
    monkeypatch.setattr(script, "TOLERANCE", {"fp32": 1e-3})
    (tmp_path / "lib.so").touch()
    return plan


def run(script: ModuleType, folder: Path) -> tuple[int, dict[str, Any]]:
    output = folder / "check.json"
    code = script.main(["--plugin-library", str(folder / "lib.so"), "-o", str(output)])
    return code, {each["route"]: each for each in json.loads(output.read_text())["findings"]}


def test_every_route_is_tried(script: ModuleType, here: Plan, tmp_path: Path) -> None:
    _, found = run(script, tmp_path)
    for route in (
        "ONNX, TensorRT's own layers",
        "ONNX with plugin nodes",
        "wpk optimize --engine tensorrt",
    ):
        assert found[route]["passed"], found[route]["detail"]
        assert found[route]["error"] < 1e-3
    assert found["ONNX with plugin nodes"]["facts"]["plugins"]
    assert "network definition with a plugin" in found


def test_wrong_numbers_fail(
    script: ModuleType, here: Plan, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here.wrong = 0.5
    code, found = run(script, tmp_path)
    assert code == 1
    assert "differs from ONNX Runtime" in found["ONNX, TensorRT's own layers"]["detail"]
    assert (
        "does not compute what the model does" in found["wpk optimize --engine tensorrt"]["detail"]
    )
    assert "FAILED" in capsys.readouterr().out


def test_a_machine_without_a_gpu_is_told_so(
    script: ModuleType, here: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> None:
        raise EngineError("there is no GPU", fix="get one")

    monkeypatch.setattr(script, "read_gpu", none)
    assert script.main(["--plugin-library", str(tmp_path / "lib.so")]) == 1
