"""ONNX Runtime on the untouched model: a witness that shares no code with wpk."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from wpk.checks.float64_nodes import Array
from wpk.errors import EngineError
from wpk.graph_passes import open_session, run_session

_LONGEST = 200
"""How many characters of ONNX Runtime's message are passed on."""


class WitnessError(EngineError):
    """ONNX Runtime cannot execute the model, or not on these inputs: it can testify to nothing."""


def require_onnxruntime() -> None:
    """Import ONNX Runtime.

    Raises:
        EngineError: It is missing.
    """
    try:
        import_module("onnxruntime")
    except ImportError as error:
        raise EngineError(
            f"verification needs onnxruntime, which cannot be imported: {error}",
            fix="pip install onnxruntime, or optimize with --check off",
        ) from error


class ModelReference:
    """ONNX Runtime on the model's own file."""

    def __init__(self, path: Path) -> None:
        """Load the model.

        Raises:
            EngineError: ONNX Runtime is missing.
            WitnessError: It cannot load the model.
        """
        require_onnxruntime()
        try:
            self._session = open_session(str(path))
        except Exception as error:  # onnxruntime's exceptions share no base class
            raise WitnessError(
                f"ONNX Runtime cannot load {path}: {_words(error)}",
                fix="export the model with an opset that this onnxruntime knows, or update it",
            ) from error

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The model's outputs by name.

        Raises:
            WitnessError: It cannot execute the model on these inputs.
        """
        names = [output.name for output in self._session.get_outputs()]
        try:
            outputs = run_session(self._session, inputs, names)
        except Exception as error:  # as above
            raise WitnessError(
                f"ONNX Runtime cannot execute the model on these inputs: {_words(error)}",
                fix="give inputs that the model is made for: --inputs X.npz",
            ) from error
        return dict(zip(names, outputs, strict=True))


def _words(error: Exception) -> str:
    """The first line of a message, without the status that it begins with."""
    line = next(iter(str(error).splitlines()), "") or type(error).__name__
    return line.removeprefix("[ONNXRuntimeError] : ")[:_LONGEST]
