"""TensorRT beside wpk, where TensorRT is installed: its own engine, the engine that hosts generated kernels, and the plan."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from rows.base import Context, Outcome, Row, RowError, microseconds
from rows.engines import EXPORTED, static_plan
from wpk.backends import open_gpu
from wpk.device import CudaDevice
from wpk.engine import Engine, random_inputs
from wpk.errors import WpkError
from wpk.nvinfer import EngineCalls, EngineSession, PlacedEngine, find_binding
from wpk.options import TensorRTOptions
from wpk.plan.plan_file import read_plan
from wpk.tensorrt.hosting import seconds_of
from wpk.tensorrt_pipeline import optimize_tensorrt

LIBRARY_VARIABLE = "WPK_TENSORRT_PLUGINS"
"""Names libwpk_tensorrt.so."""

TURNS = 7


def rows() -> list[Row]:
    """One of each network."""
    claim = "an engine that hosts generated kernels is not slower than TensorRT's own"
    return [Row(f"tensorrt.{name}.fp16", claim, partial(_measure, name)) for name in EXPORTED]


def _measure(name: str, context: Context) -> Outcome:
    library = os.environ.get(LIBRARY_VARIABLE)
    if library is None:
        raise RowError(f"{LIBRARY_VARIABLE} names no plugin library: see docs/tensorrt.md")
    model, plan = static_plan(name, context)
    try:
        binding = find_binding()
        built = {
            "TensorRT": _engine(model, context.folder / "native.plan", "none", context),
            "hosting": _engine(model, context.folder / "hosting.plan", library, context),
        }
    except WpkError as error:
        raise RowError(f"{error.what}; fix: {error.fix}") from error
    bundle = read_plan(plan)
    arrays = random_inputs(bundle.plan, 0)
    calls = EngineCalls()
    samples: dict[str, list[float]] = {"wpk": [], **{each: [] for each in built}}
    with CudaDevice(libraries=calls) as device, open_gpu() as own, Engine(bundle, own) as engine:
        engine.run(arrays)
        replays: dict[str, Any] = {"wpk": (own, engine.bind().replay)}
        placed = []
        for each, (path, _) in built.items():
            session = EngineSession(binding, path.read_bytes())
            placed.append(PlacedEngine(session, device, calls, arrays))
            replays[each] = (device, placed[-1].replay)
        for _ in range(TURNS):
            for each, (where, replay) in replays.items():
                samples[each].append(seconds_of(where, replay))
        for each in placed:
            each.close()
    times = {each: median(seconds) for each, seconds in samples.items()}
    figures = {
        "tensorrt": binding.version,
        "seconds": times,
        "samples": samples,
        "choices": built["hosting"][1]["choices"],
    }
    summary = ", ".join(f"{each} {microseconds(seconds)}" for each, seconds in times.items())
    return Outcome(times["hosting"] <= times["TensorRT"] * 1.01, summary, figures)


def _engine(
    model: Path, path: Path, library: str, context: Context
) -> tuple[Path, Mapping[str, Any]]:
    outcome = optimize_tensorrt(
        model,
        path,
        tensorrt=TensorRTOptions(plugin_library=Path(library)),
        cache=context.store,
        check="quick",
        precision="fp16",
        effort=context.effort,
        budget=context.budget,
    )
    assert outcome.description is not None
    return path, outcome.description
