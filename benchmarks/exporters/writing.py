"""Graphs written by their exporters; this needs torch, torchvision, transformers, timm or skl2onnx."""

from __future__ import annotations

import importlib.metadata
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from exporters.architecture import SIZES, Architecture, Export, Given
from exporters.inputs import draw_arrays
from exporters.store import Facts, emptied, refilled
from exporters.waking import calibrate, draw, wake

SCRIPT_OPSET = 17
DYNAMO_OPSET = 18
SKLEARN_OPSET = 17

OTHER_BATCH = 3
"""At which a graph with a free batch must run, too."""

_ML_OPERATORS = ("LinearClassifier", "LinearRegressor", "Scaler", "Normalizer")
"""Of ONNX's domain for machine learning: skl2onnx can write them in ONNX's own operators."""

_PACKAGES = {"sklearn": ("skl2onnx", "scikit-learn"), "torch": ("torch", "onnxscript")}


def export(
    architecture: Architecture, wanted: Export, seed: int = 0
) -> tuple[onnx.ModelProto, Facts]:
    """Return an exported graph, emptied, and its facts.

    Raises:
        Exception: Whatever the exporter raises; or ONNX Runtime does not execute the graph.
    """
    inputs = tuple(_named(each, wanted.free) for each in architecture.inputs)
    if wanted.exporter == "sklearn":
        model = _of_sklearn(architecture.build(), inputs)
        packages = _PACKAGES["sklearn"]
    else:
        model = _of_torch(architecture, wanted, inputs, seed)
        packages = (architecture.family, *_PACKAGES["torch"])
    versions = {each: importlib.metadata.version(each) for each in dict.fromkeys(packages)}
    stripped, weights = emptied(model)
    there = {each.name for each in stripped.graph.input}
    inputs = tuple(each for each in inputs if each.name in there)
    facts = Facts(architecture.family, architecture.kind, inputs, versions, weights)
    _require_numbers(refilled(stripped, facts, seed), facts, wanted)
    return stripped, facts


def _named(given: Given, free: tuple[str, ...]) -> Given:
    sizes = tuple(each if each in free else SIZES.get(each, each) for each in given.shape)  # type: ignore[call-overload]
    return replace(given, shape=sizes)


def _of_torch(
    architecture: Architecture, wanted: Export, inputs: tuple[Given, ...], seed: int
) -> onnx.ModelProto:
    import torch

    torch.backends.mha.set_fastpath_enabled(False)  # which the script exporter cannot write
    torch.manual_seed(seed)
    module = architecture.build().eval()
    wake(module)
    calibrate(module, architecture.inputs)
    given = draw(inputs, SIZES, seed)
    common: dict[str, Any] = {"input_names": [each.name for each in inputs], "verbose": False}
    with torch.no_grad(), warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        path = Path(folder) / "model.onnx"
        if wanted.exporter == "dynamo":
            common |= {"dynamo": True, "opset_version": DYNAMO_OPSET, "external_data": False}
            if wanted.free:
                common["dynamic_shapes"] = _dynamic_shapes(module, inputs)
        else:
            common |= {"dynamo": False, "opset_version": SCRIPT_OPSET}
            if wanted.free:
                common["dynamic_axes"] = {each.name: _axes(each) for each in inputs}
        torch.onnx.export(module, given, path, **common)
        return onnx.load(path)


def _axes(given: Given) -> dict[int, str]:
    return {axis: size for axis, size in enumerate(given.shape) if isinstance(size, str)}


def _dynamic_shapes(module: Any, inputs: tuple[Given, ...]) -> Any:
    import inspect

    import torch

    names = {size for each in inputs for size in _axes(each).values()}
    dims = {name: torch.export.Dim(name, min=1, max=64) for name in names}
    shapes = tuple({axis: dims[name] for axis, name in _axes(each).items()} for each in inputs)
    parameters = inspect.signature(module.forward).parameters.values()
    return (shapes,) if any(each.kind is each.VAR_POSITIONAL for each in parameters) else shapes


def _of_sklearn(estimator: Any, inputs: tuple[Given, ...]) -> onnx.ModelProto:
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType
    from sklearn.base import is_classifier

    (given,) = inputs
    types = [(given.name, FloatTensorType([None, *given.shape[1:]]))]
    options = {id(estimator): {"zipmap": False}} if is_classifier(estimator) else None
    made = to_onnx(
        estimator,
        initial_types=types,
        target_opset={"": SKLEARN_OPSET, "ai.onnx.ml": 3},
        options=options,
        black_op=set(_ML_OPERATORS),
    )
    return onnx.load_from_string(made.SerializeToString())


def _require_numbers(model: onnx.ModelProto, facts: Facts, wanted: Export) -> None:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    sizes = {**SIZES, "batch": OTHER_BATCH} if wanted.free else SIZES
    for each in (SIZES, sizes):
        for output in session.run(None, draw_arrays(facts.inputs, each, 0)):
            numbers = np.issubdtype(output.dtype, np.floating)
            if numbers and not np.isfinite(output).all():
                raise ValueError(f"{wanted}: outputs are not finite")
