"""What bad input gets: one line of what and where, a fix, the right exit code, nothing written."""

import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from support.devices.processes import interrupt, start_python

Refused = Callable[..., str]
WriteModel = Callable[[str], Path]

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '


def optimize(refused: Refused, model: Path, *options: object) -> str:
    """The message that optimizing gives; nothing may be written."""
    output = model.parent / "out.plan"
    before = sorted(model.parent.iterdir())
    message = refused("optimize", model, "-o", output, "--target", "h200", *options)
    assert sorted(model.parent.iterdir()) == before
    return message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("(float[1, 8] x) => (float[1, 8] y) { a = Add(x, y) y = Relu(a) }", "topologically"),
        ("(float[1, 8] x) => (float[1, 8] x) { }", "no computation"),
        (
            "(float[N, L] x) => (float[N, L] y) { y = Softmax<axis = 1>(x) }",
            "Softmax along the free dimension 'L'",
        ),
        ("(float[1, 8] x) => (float[1, 8] y) { y = Frobnicate(x) }", "Frobnicate"),
        ("(float[99999, 99999] x) => (float[99999, 99999] y) { y = Relu(x) }", "claims 9999800001"),
        (
            "(float[1, 8] x) => (float[P, Q] y) <int64[2] s = {999999999, 999999999}> { y = Expand(x, s) }",
            "contradict",
        ),
        (
            "(float[1, 1] x) => (float[P, Q] y) <int64[2] s = {999999, 999999}> { y = Expand(x, s) }",
            "claims 999998000001",
        ),
        ("(float[3, 8] x, float[4, 8] z) => (float[3, 8] y) { y = Add(x, z) }", "contradict"),
        ("(seq(float[1]) x) => (int64 y) { y = SequenceLength(x) }", "'x': sequence"),
        ("(string[1, 8] x) => (string[1, 8] y) { y = Identity(x) }", "STRING"),
    ],
)
def test_models_that_cannot_be_carried(
    refused: Refused, write_model: WriteModel, text: str, reason: str
) -> None:
    options = ("--fallback", "off") if "Softmax" in text else ()
    message = optimize(refused, write_model(HEAD + text), *options)
    assert reason.lower() in message.lower()


def test_all_unsupported_nodes_are_listed_at_once(
    refused: Refused, write_model: WriteModel
) -> None:
    text = (
        "(float[1, 8] x) => (float[1, 8] y) "
        "{ [one] a = RandomNormalLike(x) [two] b = Relu(a) [three] y = Bernoulli(b) }"
    )
    message = optimize(refused, write_model(HEAD + text), "--fallback", "off")
    assert "one" in message
    assert "three" in message
    assert "RandomNormalLike" in message
    assert "Bernoulli" in message


@pytest.mark.parametrize("opset", [10, 999])
def test_opsets_out_of_range(refused: Refused, write_model: WriteModel, opset: int) -> None:
    text = f"{HEAD}(float[1, 8] x) => (float[1, 8] y) {{ y = Relu(x) }}".replace("17", str(opset))
    assert f"uses opset {opset}" in optimize(refused, write_model(text))


@pytest.mark.parametrize(
    "content",
    [b"", b"\x08", Random(0).randbytes(4096), b"\x0a\xff\xff\xff\xff\x0f"],
    ids=["nothing", "a tag", "any bytes", "a length that is not there"],
)
def test_files_that_are_no_model(refused: Refused, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    assert str(path) in optimize(refused, path)


def test_a_truncated_model(refused: Refused, model: Path, tmp_path: Path) -> None:
    data = model.read_bytes()
    path = tmp_path / "cut.onnx"
    for end in range(1, len(data), max(1, len(data) // 12)):
        path.write_bytes(data[:end])
        optimize(refused, path)


def test_missing_external_data(refused: Refused, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "big.onnx"
    onnx.save(
        onnx.load(model), path, save_as_external_data=True, location="big.data", size_threshold=0
    )
    (tmp_path / "big.data").unlink()
    assert "big.data" in optimize(refused, path)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--target", "h2000"], "unknown target 'h2000'"),
        (["--target", "auto"], "auto"),
        (["--target", "v100"], "performance models only"),
        (["--target", "rtx2080", "--precision", "bf16"], "bf16"),
        (["--shapes", "x=1x8"], "--shapes cannot read"),
        (["--shapes", "z:1x8"], "'z', which is no input"),
        (["--skip-pass", "magic"], "no pass is called 'magic'"),
        (["--change-site", "magic:0123456789abcdef"], "no pass is called 'magic'"),
        (["--change-site", "fuse-operators:0123456789abcdef"], "is called fuse-operators:0123"),
        (["--skip-template", "magic"], "no schedule template is called 'magic'"),
        (["--skip-template", "normalisation"], "normalisation: left out on request"),
    ],
)
def test_options_that_do_not_fit(
    refused: Refused, model: Path, tmp_path: Path, options: list[str], reason: str
) -> None:
    output = tmp_path / "out.plan"
    command = ["optimize", model, "-o", output]
    target = [] if "--target" in options else ["--target", "h200"]
    assert reason in refused(*command, *target, *options)
    assert not output.exists()


def test_a_folder_that_is_not_there(refused: Refused, model: Path, tmp_path: Path) -> None:
    output = tmp_path / "nowhere" / "out.plan"
    command = ["optimize", model, "-o", output, "--target", "h200", "--check", "off"]
    assert "cannot be written" in refused(*command)


@pytest.mark.parametrize("command", ["run", "verify", "inspect", "report"])
@pytest.mark.parametrize("damage", ["truncated", "random", "missing", "traversal"])
def test_damaged_plans(
    refused: Refused, plan: Path, model: Path, tmp_path: Path, command: str, damage: str
) -> None:
    path = tmp_path / "bad.plan"
    match damage:
        case "truncated":
            path.write_bytes(plan.read_bytes()[:-3000])
        case "random":
            path.write_bytes(np.random.default_rng(0).bytes(5000))
        case "traversal":
            path.write_bytes(plan.read_bytes())
            with zipfile.ZipFile(path, "a") as archive:
                archive.writestr("../../evil", "x")
    extra: dict[str, list[Any]] = {"verify": [model], "report": ["-o", tmp_path / "r.html"]}
    assert str(path) in refused(command, path, *extra.get(command, []))
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [({}, "missing ['x']"), ({"x": np.zeros((1, 9), np.float32)}, "shape [1, 9]")],
)
def test_inputs_that_do_not_fit(
    refused: Refused, plan: Path, tmp_path: Path, arrays: dict[str, np.ndarray], reason: str
) -> None:
    np.savez(tmp_path / "x.npz", **arrays)  # type: ignore[arg-type]
    assert reason in refused("run", plan, "--inputs", tmp_path / "x.npz")


def test_inputs_that_are_no_arrays(refused: Refused, plan: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(b"no zip")
    assert "cannot be read as arrays" in refused("run", plan, "--inputs", path)
    np.savez(path, x=np.array([{"evil": 1}], dtype=object))
    assert "cannot be read as arrays" in refused("run", plan, "--inputs", path)


def test_a_gpu_that_is_not_there(refused: Refused, plan: Path) -> None:
    message = refused("run", plan, "--device", "gpu")
    assert "GPU" in message


def _wpk(*arguments: object, **changes: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "wpk", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **changes},
    )


def test_no_compiler(plan: Path, tmp_path: Path) -> None:
    done = _wpk("run", plan, PATH=str(tmp_path), CXX="", XDG_CACHE_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "no C++ compiler found" in done.stderr
    assert "  fix: install one" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_full_disk(model: Path, tmp_path: Path) -> None:
    program = (
        "import resource, sys\n"
        "from wpk.cli.main import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    output = tmp_path / "out.plan"
    command = ["optimize", model, "-o", output, "--target", "h200", "--check", "off"]
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


LONG_TO_CHECK = (
    "(float[1,64,96,96] x, float[64,64,3,3] w) => (float[1,64,96,96] y) { "
    "a = Conv<pads=[1,1,1,1]>(x, w) b = Conv<pads=[1,1,1,1]>(a, w) "
    "c = Conv<pads=[1,1,1,1]>(b, w) y = Conv<pads=[1,1,1,1]>(c, w) }"
)
"""Its float64 references take seconds: time for an interrupt to arrive among them."""


@pytest.mark.parametrize(
    "stage",
    [
        "graph passes",
        "compiling kernels",
        pytest.param("checking operators", marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_exits_130_and_leaves_nothing(model: Path, tmp_path: Path, stage: str) -> None:
    output = tmp_path / "out.plan"
    if stage == "checking operators":
        long = onnx.parser.parse_model(HEAD + LONG_TO_CHECK)
        weights = np.random.default_rng(0).standard_normal((64, 64, 3, 3)).astype(np.float32)
        long.graph.initializer.append(onnx.numpy_helper.from_array(weights / 24, "w"))
        del long.graph.input[1]
        model = tmp_path / "cache" / "long.onnx"
        model.parent.mkdir()
        onnx.save(long, model)
    command = ["-m", "wpk", "optimize", model, "-o", output, "--target", "h200"]
    cold = {} if stage == "checking operators" else {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    process = start_python(*command, **cold)
    assert process.stderr is not None
    reached = next((line for line in process.stderr if line.startswith(stage)), "")
    time.sleep(0.2)
    interrupt(process)
    _, err = process.communicate(timeout=60)
    assert reached
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert not output.exists()
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == []
