"""The engine's file, and beside it a JSON that says what it is: ``model.plan`` and ``model.plan.json``."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wpk.nvinfer import Binding, TensorRTError
from wpk.plan import atomic_file
from wpk.tensorrt.autotuning import TunedOperator
from wpk.tensorrt.build import BuiltEngine, Layer, Request
from wpk.tensorrt.exported import operator_of
from wpk.version import VERSION

SCHEMA = 1
"""Raised when an older reader would misunderstand the file."""


def sidecar_path(engine: Path) -> Path:
    """Where the JSON of an engine lies."""
    return engine.with_name(engine.name + ".json")


def describe(
    binding: Binding,
    request: Request,
    engine: BuiltEngine,
    operators: frozenset[str],
    origin: dict[str, Any],
) -> dict[str, Any]:
    """What the sidecar says.

    Args:
        binding: Which TensorRT built.
        request: What it was asked for.
        engine: What it gave.
        operators: Names of the optimized graph's operators.
        origin: Of the model: its file, digest, and the graph passes.
    """
    asked = asdict(request.options)
    cache = request.options.timing_cache
    asked["timing_cache"] = None if cache is None else cache.name
    library = request.options.plugin_library
    asked["plugin_library"] = None if library is None else library.name
    return {
        "schema": SCHEMA,
        "wpk": VERSION,
        "tensorrt": {"version": binding.version, "rtx": binding.rtx},
        "engine": {"sha256": hashlib.sha256(engine.data).hexdigest(), "bytes": len(engine.data)},
        "origin": origin,
        "target": {
            "name": request.target.name,
            "compute_capability": list(request.target.capability),
        },
        "precision": str(request.precision),
        "options": asked,
        "inputs": [asdict(each) for each in engine.inputs],
        "outputs": [asdict(each) for each in engine.outputs],
        "profiles": [
            {n: dict(zip(("min", "opt", "max"), s, strict=True)) for n, s in engine.profile.items()}
        ]
        if engine.profile
        else [],
        "layers": [_layer(each, operators) for each in engine.layers],
        "tuned": [_tuned(each, operators) for each in engine.tuned],
    }


def write_engine(path: Path, engine: BuiltEngine, description: dict[str, Any]) -> None:
    """Write an engine and its sidecar, both or neither; the sidecar holds the engine's digest.

    Raises:
        OutputError: One of them cannot be written.
    """
    text = json.dumps(description, indent=1, ensure_ascii=False, allow_nan=False)
    with atomic_file(path) as plan, atomic_file(sidecar_path(path)) as sidecar:
        plan.write(engine.data)
        sidecar.write(text.encode())


def read_sidecar(engine: Path) -> dict[str, Any]:
    """What the JSON beside an engine says.

    Raises:
        TensorRTError: There is none, it is of another schema, or of another engine.
    """
    path = sidecar_path(engine)
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        digest = told["engine"]["sha256"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TensorRTError(
            f"{engine} is an engine of TensorRT, and {path} tells nothing of it: {error}",
            fix="keep the JSON that wpk writes beside an engine; trtexec --loadEngine executes it without",
        ) from error
    if told.get("schema") != SCHEMA:
        raise TensorRTError(
            f"{path} has schema {told.get('schema')!r}, this version of wpk reads {SCHEMA}",
            fix="read it with the version of wpk that wrote it",
        )
    if digest != hashlib.sha256(engine.read_bytes()).hexdigest():
        raise TensorRTError(
            f"{path} tells of another engine than {engine}",
            fix="put the engine and the JSON that were written together beside each other",
        )
    return dict(told)


def _tuned(tuned: TunedOperator, operators: frozenset[str]) -> dict[str, Any]:
    """What TensorRT timed, with the operators that it belongs to: layers that it fuses are joined by a plus sign."""
    parts = tuned.name.split(" + ")
    owners = {part if part in operators else operator_of(part, operators) for part in parts}
    return {**asdict(tuned), "operators": sorted(owner for owner in owners if owner is not None)}


def _layer(layer: Layer, operators: frozenset[str]) -> dict[str, str | None]:
    operator = operator_of(layer.node, operators) or operator_of(layer.name, operators)
    return {**asdict(layer), "operator": operator}
