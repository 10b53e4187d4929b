"""The command, called as a person calls it, and a small model with its plan."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest

from wpk.cli.main import main

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 8] x) => (float[batch, 5] y)
{
  [fc] l = MatMul(x, m)
  [act] r = Relu(l)
  [prob] y = Softmax<axis = 1>(r)
}
"""


@dataclass(frozen=True)
class Result:
    """What a command gave."""

    code: int
    out: str
    err: str


Command = Callable[..., Result]


@pytest.fixture
def wpk(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs ``wpk`` with arguments."""

    def run(*arguments: object) -> Result:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exit_:  # argparse ends the process itself
            code = int(exit_.code or 0)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run


@pytest.fixture
def refused(wpk: Command) -> Callable[..., str]:
    """Runs ``wpk``, expects one line and its fix on stderr, and gives that line."""

    def run(*arguments: object, code: int = 1) -> str:
        result = wpk(*arguments)
        lines = [line for line in result.err.splitlines() if not _is_progress(line)]
        assert result.code == code, result.err
        assert "Traceback" not in result.err
        assert lines[0].startswith("wpk: error: ")
        assert lines[-1].startswith("  fix: ")
        return "\n".join(lines[:-1])

    return run


def _is_progress(line: str) -> bool:
    return line.startswith(("graph passes", "scoring", "compiling", "checking", "comparing"))


def save(path: Path, text: str = MODEL, seed: int = 0) -> Path:
    """A model from text; ``m`` is a seeded (8, 5) matrix."""
    model = onnx.parser.parse_model(text)
    values = np.random.default_rng(seed).standard_normal((8, 5)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(values, "m"))
    onnx.save(model, path)
    return path


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A product, ReLU, softmax, with a free batch."""
    return save(tmp_path_factory.mktemp("cli") / "small.onnx")


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with other weights."""
    return save(tmp_path_factory.mktemp("cli") / "other.onnx", seed=1)


@pytest.fixture(scope="session")
def plan(model: Path) -> Path:
    """Its plan."""
    path = model.with_suffix(".plan")
    assert main(["optimize", str(model), "-o", str(path), "--target", "h200"]) == 0
    return path


@pytest.fixture
def write_model(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a model given as text."""
    return lambda text: save(tmp_path / "model.onnx", text)
