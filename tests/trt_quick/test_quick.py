"""Quick plugins: what can be one, what TensorRT is told of it, and that NVIDIA's bindings take it."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from trt_bindings.real_bindings import QUICK_VERSIONS, ROOT, package_of

import wpk
from wpk.dims import evaluate
from wpk.dtypes import DType
from wpk.launch import (
    CounterArgument,
    InputArgument,
    OutputArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.nvinfer import TensorRTError
from wpk.plan import PlanBundle
from wpk.tensorrt.operators import Built, forms_of
from wpk.tensorrt.quick import QuickOperator, quick_operator, why_not

MODEL = """<ir_version: 8, opset_import: ["" : 17]> g (float16[{batch}, 16, 6, 10] x) => (float16[{batch}, 16, 6, 10] y) {{
  s = Sigmoid(x)
  y = Mul(x, s)
}}"""

Planned = Callable[[str], Built]


@pytest.fixture
def planned(tmp_path: Path, one_finalist: None) -> Planned:
    def plan(batch: str, form: int = 0) -> Built:
        found = forms_of(onnx.parser.parse_model(MODEL.format(batch=batch)))[form]
        path = tmp_path / "operator.onnx"
        onnx.save(found.model, path)
        options = {"target": "h200", "precision": "fp16", "search": "static", "check": "off"}
        return Built(found.formats, wpk.optimize(path, tmp_path / "operator.plan", **options))

    return plan


@pytest.fixture
def quick(planned: Planned) -> QuickOperator:
    return quick_operator("swish", planned("N"))


def changed(bundle: PlanBundle, **launch: Any) -> PlanBundle:
    (step,) = bundle.plan.steps
    launches = (replace(step.launches[0], **launch),)
    return replace(bundle, plan=replace(bundle.plan, steps=(replace(step, launches=launches),)))


@pytest.mark.parametrize(
    ("launch", "reason"),
    [
        ({"shared_bytes": 50_000}, "more than 48 KiB"),
        ({"cluster": (2, 1, 1)}, "clusters"),
        ({"arguments": (InputArgument(0), OutputArgument(0), WorkspaceArgument(16))}, "scratch"),
        ({"arguments": (InputArgument(0), OutputArgument(0), CounterArgument(1))}, "counters"),
        (
            {"arguments": (TensorMapArgument(0, (8,), (), (8,), 0), OutputArgument(0))},
            "tensor maps",
        ),
        ({"arguments": (InputArgument(1), OutputArgument(0))}, "once each"),
    ],
)
def test_what_cannot_be_one_says_why(planned: Planned, launch: dict[str, Any], reason: str) -> None:
    built = planned("2")
    bundle = changed(built.bundle, **launch)
    assert reason in why_not(bundle.plan.steps[0], (DType.FP16,))
    with pytest.raises(TensorRTError, match=f"cannot be a quick plugin: .*{reason}"):
        quick_operator("swish", replace(built, bundle=bundle))


def test_types_and_several_kernels_are_reasons(planned: Planned) -> None:
    (step,) = planned("2").bundle.plan.steps
    assert why_not(step, (DType.FP16,)) == ""
    assert "give no bool" in why_not(step, (DType.BOOL,))
    assert "2 kernels" in why_not(replace(step, launches=step.launches * 2), (DType.FP16,))


def test_the_kernel_is_told_as_ptx(quick: QuickOperator) -> None:
    text = quick.ptx.decode()
    assert ".target sm_90a" in text
    assert f".visible .entry {quick.entry}(" in text
    parameters = text.split(f".entry {quick.entry}(")[1].split(")")[0].count(".param")
    assert parameters == len(quick.spec.inputs) + len(quick.numbers) + len(quick.spec.outputs)


def test_every_kernel_has_a_name_of_its_own(planned: Planned) -> None:
    names = {quick_operator("swish", planned(batch)).name for batch in ("2", "3", "N")}
    assert len(names) == 3


@pytest.mark.parametrize("version", QUICK_VERSIONS)
@pytest.mark.parametrize("form", [0, 1])
def test_nvidias_bindings_take_it(planned: Any, tmp_path: Path, version: str, form: int) -> None:
    quick = quick_operator("swish", planned("N"), planned("N", form))
    found = driven(quick, version, tmp_path, batch=5)
    (launch,) = quick.spec.variants[0].launches
    dims = {"N": 5}
    assert (found["inputs"], found["outputs"]) == (["x0"], 1)
    assert found["shapes"] == [[5, 16, 6, 10]]
    assert found["types"] == ["DataType.HALF"]
    assert found["formats"] == (["LINEAR", "LINEAR"], ["HWC8", "HWC8"])[form]
    assert found["io_types"] == ["FP16", "FP16"]
    assert found["grid"] == [evaluate(each, dims) for each in launch.grid]
    assert (found["block"], found["shared"]) == (list(launch.block), launch.shared_bytes)
    assert found["numbers"] == [evaluate(each, dims) for each in quick.numbers]
    assert set(found["kinds"]) == {"SymInt32"}
    assert found["entry"] == quick.entry
    assert ".target sm_90a" in found["ptx"]


def driven(quick: QuickOperator, version: str, folder: Path, batch: int) -> dict[str, Any]:
    package = package_of(version)
    path = folder / "operator.pickle"
    path.write_bytes(pickle.dumps(quick))
    search = os.pathsep.join(map(str, (package, *filter(None, sys.path))))
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "trt_quick" / "drive_quick.py", path, str(batch)],
        env={**os.environ, "PYTHONPATH": search, "LD_LIBRARY_PATH": str(package / "stubs")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])
    return told
