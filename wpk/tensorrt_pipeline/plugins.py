"""Each operator of the model as a plugin: cut out, optimized in TensorRT's formats, put together."""

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import onnx

from wpk.errors import WpkError
from wpk.plan import PlanBundle
from wpk.progress import Progress
from wpk.tensorrt import TensorRTError
from wpk.tensorrt.operators import Built, PluginOperator, forms_of, operator_model, plugin_operator

STAGE = "operators as plugins"

Optimizing = Callable[[Path, Path], Sequence[PlanBundle]]
"""Writes the plan of a model of one operator; gives it, and plans by other means that were measured beside it."""


def make_plugins(
    model: onnx.ModelProto, operators: Iterable[str], optimizing: Optimizing, progress: Progress
) -> tuple[dict[str, PluginOperator], dict[str, str]]:
    """Make what can be a plugin.

    Args:
        model: What `wpk.tensorrt.exported` gives.
        operators: Names of its operators.
        optimizing: Optimizes the model of one operator in one format.
        progress: Told of every operator.

    Returns:
        The plugins, and for each of the other operators why it is none.
    """
    names = sorted(operators)
    made: dict[str, PluginOperator] = {}
    refused: dict[str, str] = {}
    for done, name in enumerate(names):
        progress(STAGE, done, len(names))
        try:
            made[name] = _plugin(model, name, optimizing)
        except TensorRTError as error:
            refused[name] = error.what
    progress(STAGE, len(names), len(names))
    return made, refused


def count_forms(model: onnx.ModelProto, operators: Iterable[str]) -> int:
    """How many models `make_plugins` optimizes."""
    return sum(len(forms_of(operator_model(model, name))) for name in operators)


def _plugin(model: onnx.ModelProto, name: str, optimizing: Optimizing) -> PluginOperator:
    built, failed = [], []
    with tempfile.TemporaryDirectory(prefix="wpk-operator-") as folder:
        for form in forms_of(operator_model(model, name)):
            path = Path(folder, "operator.onnx")
            onnx.save(form.model, path)
            try:
                bundles = optimizing(path, Path(folder, "operator.plan"))
            except WpkError as error:
                failed.append(error.what)
                continue
            built += [Built(form.formats, bundle) for bundle in bundles]
    if not built:
        raise TensorRTError(
            f"operator '{name}' cannot be a plugin: " + "; ".join(failed),
            fix="leave it to TensorRT",
        )
    return plugin_operator(name, built)
