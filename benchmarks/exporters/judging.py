"""One exported graph through `wpk.optimize` and the emulator, beside ONNX Runtime on fresh inputs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import numpy_helper

import wpk
from exporters import store
from exporters.architecture import SIZES
from exporters.inputs import draw_arrays
from wpk.errors import VerificationError, WpkError
from wpk.plan.plan import Plan
from wpk.problems import Fallback
from wpk.search.models import FINALISTS, model_search
from wpk.search.models.static_search import Shortlists

Outputs = list[NDArray[Any]]

BATCHES = (2, 3)
"""At which a graph with a free batch is executed."""

ALLOWED = 1e-4
"""Of the root mean square of an output: the largest difference of an element, in fp32."""

MAGNIFIED = 16.0
"""A network may magnify rounding: this often is allowed what its outputs move by where each weight and
input moves by one unit in the last place, since results between them are rounded, too."""

INPUT_SEED = 1000
"""Of the inputs, apart from those that wpk's own checks draw."""

Record = dict[str, Any]


def judge(
    name: str, archive: Path, folder: Path, seed: int = 0, finalists: int = FINALISTS
) -> Record:
    """Optimize a graph, execute its engine, and return what became of it.

    Args:
        name: Of the graph.
        archive: What holds it.
        folder: Where its model and plan are written.
        seed: Of weights and inputs.
        finalists: Schedules of a problem that are compiled, of which the best is chosen.

    The record's ``outcome`` is ``right``, ``wrong``, ``refused`` (with ``why``), ``alarm`` (wpk's own
    checks stopped it) or ``crashed``.
    """
    model, facts = store.read(name, seed, archive)
    path, began = folder / "model.onnx", time.monotonic()
    onnx.save(model, path)
    record: Record = {"family": facts.family, "kind": facts.kind, "nodes": len(model.graph.node)}
    record["finalists"] = finalists
    try:
        with _compiling(finalists):
            bundle = wpk.optimize(path, folder / "model.plan", target="h200", search="static")
    except VerificationError as error:
        return record | {"outcome": "alarm", "why": error.what}
    except WpkError as error:
        crashed = "bug" in error.fix
        return record | {"outcome": "crashed" if crashed else "refused", "why": error.what}
    record |= _told(bundle.plan) | {"optimize_seconds": round(time.monotonic() - began, 1)}
    return record | _compared(model, facts, folder / "model.plan", seed)


@contextmanager
def _compiling(finalists: int) -> Iterator[None]:
    """Let a search compile so many schedules of each problem, and others only if they fail."""
    with (
        patch.object(model_search, "FINALISTS", finalists),
        patch.object(Shortlists.finalists, "__defaults__", (0, finalists)),
    ):
        yield


def _told(plan: Plan) -> Record:
    problems = [step.operator.problem for step in plan.steps]
    handed = [name for each in problems if isinstance(each, Fallback) for name in each.operators]
    kernels = sum(not isinstance(each, Fallback) for each in problems)
    return {"kernels": kernels, "fallback": handed}


def _compared(model: onnx.ModelProto, facts: store.Facts, plan: Path, seed: int) -> Record:
    free = any(isinstance(size, str) for each in facts.inputs for size in each.shape)
    session, moved_session = _session(model), _session(_moved(model, seed))
    worst, limit, wrong = 0.0, ALLOWED, ""
    with wpk.load(plan, device="cpu") as engine:
        for batch in BATCHES if free else BATCHES[:1]:
            sizes = {**SIZES, "batch": batch}
            given = draw_arrays(facts.inputs, sizes, INPUT_SEED + seed)
            expected, moved = session.run(None, given), moved_session.run(None, _nudged(given))
            found = engine.run(given)
            for info, right, other in zip(model.graph.output, expected, moved, strict=True):
                error, allowed = _difference(np.asarray(found[info.name]), right, other)
                if not error <= allowed:
                    wrong = f"{info.name} at batch {batch}: {error:.2g}, allowed {allowed:.2g}"
                if not error / allowed <= worst / limit:
                    worst, limit = error, allowed
    record = {"error": float(f"{worst:.3g}"), "allowed": float(f"{limit:.3g}")}
    return record | ({"outcome": "wrong", "why": wrong} if wrong else {"outcome": "right"})


def _difference(
    found: NDArray[Any], right: NDArray[Any], moved: NDArray[Any]
) -> tuple[float, float]:
    """The largest difference and what is allowed, relative to the root mean square.

    Integers must be equal, but where rounding decides them; so must shapes be.
    """
    if found.shape != right.shape or found.dtype != right.dtype:
        return (0.0 if right.shape != moved.shape == found.shape else np.inf), ALLOWED
    if right.size == 0:
        return 0.0, ALLOWED
    if not np.issubdtype(right.dtype, np.floating):
        same = right.shape == moved.shape
        sure = (right == moved) if same else np.ones(right.shape, bool)
        return float((found != right)[sure].any()), ALLOWED
    exact, scale = (
        right.astype(np.float64),
        float(np.sqrt(np.mean(np.square(right, dtype=np.float64)))),
    )
    scale = scale or 1.0
    error = float(np.abs(found - exact).max()) / scale
    swing = float(np.abs(moved - exact).max()) / scale if moved.shape == right.shape else 0.0
    return error, max(ALLOWED, MAGNIFIED * swing)


def _session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _moved(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The model with every number of its initializers moved by one unit in the last place."""
    made, generator = onnx.ModelProto(), np.random.default_rng(seed)
    made.CopyFrom(model)
    for tensor in made.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if np.issubdtype(array.dtype, np.floating) and array.size > store.SMALL:
            towards = np.where(generator.random(array.shape) < 0.5, -np.inf, np.inf)
            values = np.nextafter(array, towards.astype(array.dtype))
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return made


def _nudged(given: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    numbers = {n: a for n, a in given.items() if np.issubdtype(a.dtype, np.floating)}
    return given | {n: np.nextafter(a, np.float32(0)) for n, a in numbers.items()}
