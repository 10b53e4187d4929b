"""Every command, on a small model."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from wpk.plan.plan import Plan
from wpk.plan.plan_file import read_plan

Command = Callable[..., Any]


def test_optimize_prints_what_was_chosen(wpk: Command, model: Path, tmp_path: Path) -> None:
    path, page = tmp_path / "m.plan", tmp_path / "m.html"
    result = wpk("optimize", model, "-o", path, "--target", "h200", "--report", page)
    assert result.code == 0
    assert "gemm" in result.out
    assert str(path) in result.out
    assert path.exists()
    assert page.read_text().startswith("<!doctype html>")
    assert "graph passes" in result.err


def test_the_same_model_gives_the_same_plan(wpk: Command, model: Path, tmp_path: Path) -> None:
    for name in ("a.plan", "b.plan"):
        command = ["optimize", model, "-o", tmp_path / name, "--target", "sm_90"]
        assert wpk(*command, "--check", "off").code == 0
    assert (tmp_path / "a.plan").read_bytes() == (tmp_path / "b.plan").read_bytes()


def test_a_skipped_pass_is_recorded(wpk: Command, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.plan"
    command = ["optimize", model, "-o", path, "--target", "h200", "--check", "off"]
    assert wpk(*command, "--skip-pass", "constant-folding").code == 0
    data = json.loads(wpk("inspect", path, "--json").out)
    assert data["provenance"]["skipped_passes"] == ["constant-folding"]
    assert wpk("verify", path, model).code == 0


def test_a_template_left_out_computes_nothing_and_says_why(
    wpk: Command, model: Path, plan: Path, tmp_path: Path
) -> None:
    template = json.loads(wpk("inspect", plan, "--json").out)["steps"][0]["candidate"]["maker"][
        "name"
    ]
    path = tmp_path / "m.plan"
    command = ["optimize", model, "-o", path, "--target", "h200", "--check", "off"]
    assert wpk(*command, "--skip-template", template).code == 0
    step = json.loads(wpk("inspect", path, "--json").out)["steps"][0]
    assert step["candidate"]["maker"]["name"] != template
    reasons = {each["template"]: each["refusal"] for each in step["evidence"]["funnels"]}
    assert reasons[template] == "left out on request"
    preview = ["optimize", model, "--dry-run", "--target", "h200", "--cache", tmp_path / "cache"]
    assert wpk(*preview).out != wpk(*preview, "--skip-template", template).out


def test_run_computes_what_the_model_computes(
    wpk: Command, model: Path, plan: Path, tmp_path: Path
) -> None:
    x = np.random.default_rng(0).standard_normal((3, 8), np.float32)
    np.savez(tmp_path / "x.npz", x=x)
    result = wpk("run", plan, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz")
    assert result.code == 0
    assert "3x5" in result.out
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    expected = session.run(None, {"x": x})[0]
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], expected, atol=1e-6)


def test_random_inputs_are_reproducible(wpk: Command, plan: Path, tmp_path: Path) -> None:
    for name in ("a.npz", "b.npz"):
        assert wpk("run", plan, "--random", 7, "--outputs", tmp_path / name).code == 0
    a, b = (np.load(tmp_path / name)["y"] for name in ("a.npz", "b.npz"))
    assert (a == b).all()


def test_verify_accepts_the_model(wpk: Command, model: Path, plan: Path) -> None:
    result = wpk("verify", plan, model, "--device", "cpu", "--seeds", 2)
    assert result.code == 0
    assert result.out.count("ONNX Runtime, seed") == 4
    assert "WRONG" not in result.out


def test_verify_exits_3_for_other_weights(
    wpk: Command, refused: Command, plan: Path, other_model: Path
) -> None:
    assert "the numbers disagree" in refused("verify", plan, other_model, code=3)
    assert "WRONG" in wpk("verify", plan, other_model).out


def test_another_model_is_wrong_usage_of_verify(
    refused: Command, plan: Path, write_model: Callable[[str], Path]
) -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[batch, 8] x) => (float[batch, 5] y) { l = MatMul(x, m) y = Sigmoid(l) }
    """
    message = refused("verify", plan, write_model(text), code=2)
    assert "was not made from this model" in message


def test_inspect_shows_the_source_of_an_operator(wpk: Command, plan: Path) -> None:
    data = json.loads(wpk("inspect", plan, "--json").out)
    step = data["steps"][0]
    result = wpk("inspect", plan, "--source", step["operator"]["name"])
    assert "#include <wpk/schedules/" in result.out
    assert step["launches"][0]["kernel"] in result.out


def test_inspect_refuses_an_unknown_operator(refused: Command, plan: Path) -> None:
    assert "no operator 'nothing'" in refused("inspect", plan, "--source", "nothing")


def test_inspect_reads_a_model(wpk: Command, model: Path) -> None:
    assert "MatMul" in wpk("inspect", model).out
    facts = json.loads(wpk("inspect", model, "--json").out)
    assert facts["operators"] == {"MatMul": 1, "Relu": 1, "Softmax": 1}
    assert facts["parameters"] == 40


def test_a_model_has_no_generated_source(refused: Command, model: Path) -> None:
    assert "only plans hold" in refused("inspect", model, "--source", "x")


def test_report_writes_one_page(wpk: Command, plan: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    assert wpk("report", plan, "-o", page).code == 0
    assert page.stat().st_size > 1000


def test_targets_lists_every_gpu(wpk: Command) -> None:
    out = wpk("targets").out
    assert all(name in out for name in ("p100", "v100", "a100", "h200", "b200"))
    known = json.loads(wpk("targets", "--json").out)
    assert known[0]["sources"]


def test_targets_shows_one_with_its_sources(wpk: Command) -> None:
    out = wpk("targets", "sm_75").out
    assert "Turing TU102/TU104 whitepaper" in out
    assert "compiles for: fp32" in out


def test_what_targets_prints_is_a_target_file(wpk: Command, model: Path, tmp_path: Path) -> None:
    described = wpk("targets", "l4", "--json").out
    path = tmp_path / "mine.json"
    path.write_text(described)
    assert wpk("targets", path, "--json").out == described
    plans: list[Plan] = []
    for target in ("l4", path):
        written = tmp_path / "one.plan"
        command = ["optimize", model, "-o", written, "--target", target, "--check", "off"]
        assert wpk(*command).code == 0
        plans.append(read_plan(written).plan)
    assert plans[0].steps == plans[1].steps
    assert plans[1].arch == "sm_89"


def test_a_file_of_all_targets_is_refused_in_words(refused: Command, tmp_path: Path) -> None:
    path = tmp_path / "all.json"
    path.write_text("[]")
    assert "expected a table of keys, got list" in refused("targets", path)


@pytest.mark.parametrize("command", ["optimize", "run", "verify", "inspect", "report", "targets"])
def test_help_of_every_command_shows_an_example(wpk: Command, command: str) -> None:
    result = wpk(command, "--help")
    assert result.code == 0
    assert f"wpk {command}" in result.out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate"],
        ["optimize"],
        ["optimize", "m.onnx"],
        ["optimize", "m.onnx", "-o", "p", "--precision", "fp8"],
        ["optimize", "m.onnx", "-o", "p", "--prec", "fp16"],
        ["run", "p", "--inputs", "x", "--random", "1"],
        ["verify", "p", "m", "--seeds", "0"],
    ],
)
def test_wrong_usage_exits_2(wpk: Command, arguments: list[str]) -> None:
    assert wpk(*arguments).code == 2


def test_help_needs_no_heavy_module() -> None:
    program = (
        "import sys\n"
        "from wpk.cli.main import main\n"
        "heavy = {'numpy', 'onnx', 'onnx_graphsurgeon', 'onnxruntime', 'pycuda', 'tensorrt'}\n"
        "try:\n    main(['optimize', '--help'])\nexcept SystemExit:\n    pass\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_closed_pipe_is_no_error(plan: Path) -> None:
    command = f"{sys.executable} -m wpk inspect {plan} --json | head -c 10"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert "Traceback" not in done.stderr
