"""One exported graph through `wpk.optimize` and the emulator or a GPU, beside ONNX Runtime on fresh inputs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
from wpk.search.models import FINALISTS, model_search

Array = NDArray[Any]

BATCHES = (2, 3)
"""At which a graph with a free batch is executed."""

ALLOWED = 1e-4
"""Of the root mean square of an output: how far an element may lie off, in fp32."""

MOVED = 8
"""Units in the last place by which each weight and input is moved to see what rounding does to a network:
more than what its operators round, whose results are sums of many rounded terms."""

VARIANTS = 4
"""So moved, each with other signs."""

MAGNIFIED = 4.0
"""So often what an element moved by is allowed beyond `ALLOWED`."""

DECIDED = 0.05
"""An element that is allowed more than this is not decided: it stands where the order of nearly equal scores
put it, as detections do."""

LEAST_DECIDED = 0.5
"""Of an output's elements; below it nothing is known of the engine."""

INPUT_SEED = 1000
"""Of the inputs, apart from those that wpk's own checks draw."""

Record = dict[str, Any]


def judge(
    name: str,
    archive: Path,
    folder: Path,
    seed: int = 0,
    finalists: int = FINALISTS,
    device: str = "cpu",
) -> Record:
    """Optimize a graph, execute its engine, and return what became of it.

    Args:
        name: Of the graph.
        archive: What holds it.
        folder: Where its model and plan are written.
        seed: Of weights and inputs.
        finalists: Schedules of a problem that are compiled, of which the best is chosen.
        device: What executes the engine: ``cpu``, for an H200, or ``gpu``, for the one that is there.

    The record's ``outcome`` is ``right``, ``wrong``, ``undecided`` (rounding decides most of an output),
    ``refused`` (with ``why``), ``alarm`` (wpk's own checks stopped it) or ``crashed``.
    """
    model, facts = store.read(name, seed, archive)
    path, began = folder / "model.onnx", time.monotonic()
    onnx.save(model, path)
    record: Record = {"family": facts.family, "kind": facts.kind, "nodes": len(model.graph.node)}
    record["finalists"] = finalists
    try:
        with _compiling(finalists):
            target = "h200" if device == "cpu" else "auto"
            bundle = wpk.optimize(path, folder / "model.plan", target=target, search="static")
    except VerificationError as error:
        return record | {"outcome": "alarm", "why": error.what}
    except WpkError as error:
        crashed = "bug" in error.fix
        return record | {"outcome": "crashed" if crashed else "refused", "why": error.what}
    record |= _told(bundle.plan) | {"optimize_seconds": round(time.monotonic() - began, 1)}
    return record | _compared(model, facts, folder / "model.plan", seed, device)


@contextmanager
def _compiling(finalists: int) -> Iterator[None]:
    """Let a search compile so many schedules of each problem, and others only if they fail."""
    with patch.object(model_search, "FINALISTS", finalists):
        yield


def _told(plan: Plan) -> Record:
    handed = [
        name
        for step in plan.steps
        if step.fallback is not None and not step.bodies
        for name in step.fallback.operators
    ]
    kernels = sum(step.fallback is None for step in plan.steps)
    return {"kernels": kernels, "fallback": handed}


@dataclass(frozen=True)
class Difference:
    """How an output differs at the element that differs most for what it is allowed.

    Attributes:
        error: There, relative to the root mean square; 1 for an integer that is wrong.
        allowed: There.
        decided: Which part of the elements rounding does not decide.
    """

    error: float
    allowed: float
    decided: float

    @property
    def excess(self) -> float:
        """Above 1 where the output is wrong."""
        return self.error / self.allowed


def _compared(
    model: onnx.ModelProto, facts: store.Facts, plan: Path, seed: int, device: str
) -> Record:
    free = any(isinstance(size, str) for each in facts.inputs for size in each.shape)
    session = _session(model)
    others = [_session(_moved(model, seed + number)) for number in range(VARIANTS)]
    found: dict[str, Difference] = {}
    with wpk.load(plan, device=device) as engine:
        for batch in BATCHES if free else BATCHES[:1]:
            given = draw_arrays(facts.inputs, {**SIZES, "batch": batch}, INPUT_SEED + seed)
            expected = session.run(None, given)
            moved = [each.run(None, _nudged(given)) for each in others]
            outputs = engine.run(given)
            for info, right, *rest in zip(model.graph.output, expected, *moved, strict=True):
                words = f"{info.name} at batch {batch}"
                found[words] = difference(np.asarray(outputs[info.name]), right, rest)
    return _judged(found)


def _judged(found: dict[str, Difference]) -> Record:
    words, worst = max(found.items(), key=lambda each: (each[1].excess, each[1].error))
    decided = min(each.decided for each in found.values())
    record: Record = {
        name: float(f"{value:.3g}")
        for name, value in (
            ("error", worst.error),
            ("allowed", worst.allowed),
            ("decided", decided),
        )
    }
    if not worst.excess <= 1:
        why = f"{words}: {worst.error:.2g}, allowed {worst.allowed:.2g}"
        return record | {"outcome": "wrong", "why": why}
    if decided < LEAST_DECIDED:
        return record | {"outcome": "undecided", "why": f"rounding decides {1 - decided:.0%} of it"}
    return record | {"outcome": "right"}


def difference(found: Array, right: Array, moved: Sequence[Array]) -> Difference:
    """Compare an output with ONNX Runtime's, element by element.

    Args:
        found: The engine's.
        right: ONNX Runtime's.
        moved: ONNX Runtime's where weights and inputs are moved by rounding.
    """
    if found.dtype != right.dtype or (found.shape != right.shape and not _varies(right, moved)):
        return Difference(np.inf, ALLOWED, 1.0)
    if _varies(right, moved):
        return Difference(0.0, ALLOWED, 0.0)
    if right.size == 0:
        return Difference(0.0, ALLOWED, 1.0)
    if not np.issubdtype(right.dtype, np.floating):
        sure = np.all([each == right for each in moved], axis=0)
        return Difference(float((found != right)[sure].any()), ALLOWED, float(sure.mean()))
    exact = right.astype(np.float64)
    scale = float(np.sqrt(np.mean(np.square(exact)))) or 1.0
    swing = np.max([np.abs(each - exact) for each in moved], axis=0) / scale
    allowed = ALLOWED + MAGNIFIED * swing
    error = np.nan_to_num(np.abs(found - exact) / scale, nan=np.inf)
    worst = np.unravel_index(np.argmax(error / allowed), error.shape)
    return Difference(
        float(error[worst]), float(allowed[worst]), float((allowed <= DECIDED).mean())
    )


def _varies(right: Array, moved: Sequence[Array]) -> bool:
    """Whether rounding decides how many elements there are."""
    return any(each.shape != right.shape for each in moved)


def _session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _moved(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The model with every number of its weights moved up or down."""
    made, generator = onnx.ModelProto(), np.random.default_rng(seed)
    made.CopyFrom(model)
    for tensor in made.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if np.issubdtype(array.dtype, np.floating) and array.size > store.SMALL:
            signs = generator.choice([-1.0, 1.0], array.shape)
            values = (array * (1 + signs * MOVED * np.finfo(array.dtype).eps)).astype(array.dtype)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return made


def _nudged(given: dict[str, Array]) -> dict[str, Array]:
    """The inputs, numbers among them moved down."""
    factor = np.float32(1 - MOVED * np.finfo(np.float32).eps)
    numbers = {n: a for n, a in given.items() if np.issubdtype(a.dtype, np.floating)}
    return given | {n: a * factor for n, a in numbers.items()}
