"""``wpk optimize --engine tensorrt`` with TensorRT for RTX, on a machine without a GPU; and what other commands say of it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.networks import handwritten

from wpk.cli.main import main
from wpk.tensorrt import Binding

Said = Callable[..., str]


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*words: object, code: int = 0) -> str:
        assert main([str(word) for word in words]) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    return run


@pytest.fixture
def engine(rtx: Binding, said: Said, tmp_path: Path) -> Path:
    model, path = handwritten.write("squeeze_excite", tmp_path), tmp_path / "model.plan"
    options = [
        "--engine",
        "tensorrt",
        "--target",
        "a100",
        "--precision",
        "fp16",
        "--shapes",
        "x:1x24x9x9:4x24x9x9:8x24x9x9",
    ]
    text = said("optimize", model, "-o", path, *options)
    assert "neither executed nor compared: there is no NVIDIA A100" in text
    return path


def test_the_engine_and_what_it_is(engine: Path, said: Said) -> None:
    told = json.loads(engine.with_name("model.plan.json").read_text())
    assert told["profiles"] == [
        {"x": {"min": [1, 24, 9, 9], "opt": [4, 24, 9, 9], "max": [8, 24, 9, 9]}}
    ]
    assert all(
        check["name"].startswith("graph passes") or "node" in check["name"]
        for check in told["checks"]
    )
    assert said("inspect", engine, "--json") == json.dumps(told) + "\n"
    text = said("inspect", engine)
    assert "engine of TensorRT for RTX" in text
    assert f"tensorrt_rtx --loadEngine={engine} executes it" in text


@pytest.mark.parametrize("command", ["run", "verify", "bench", "report"])
def test_other_commands_say_what_executes_it(engine: Path, said: Said, command: str) -> None:
    words = {"verify": [engine.with_name("squeeze_excite.onnx")], "report": ["-o", "x.html"]}
    error = said(command, engine, *words.get(command, []), code=1)
    assert "is an engine of TensorRT, which wpk does not execute" in error
    assert "tensorrt_rtx --loadEngine" in error


def test_a_sidecar_of_another_engine_is_refused(engine: Path, said: Said) -> None:
    engine.write_bytes(engine.read_bytes() + b"\0")
    assert "tells of another engine" in said("inspect", engine, code=1)
    engine.with_name("model.plan.json").unlink()
    assert "keep the JSON" in said("inspect", engine, code=1)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--optimization-level", "3"], "--engine wpk has no --optimization-level"),
        (["--engine", "tensorrt", "--lock", "x"], "--engine tensorrt has no --lock"),
    ],
)
def test_options_of_the_other_engine_are_refused(
    said: Said, tmp_path: Path, words: list[str], text: str
) -> None:
    model = handwritten.write("rows", tmp_path)
    assert text in said("optimize", model, "-o", tmp_path / "x.plan", *words, code=2)


def test_rtx_takes_no_plugins(rtx: Binding, said: Said, tmp_path: Path) -> None:
    model, path = handwritten.write("rows", tmp_path), tmp_path / "x.plan"
    options = ["--engine", "tensorrt", "--target", "a100", "--plugin-library", "x.so"]
    assert "takes no plugins" in said("optimize", model, "-o", path, *options, code=1)
    assert not path.exists()
