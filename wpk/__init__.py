"""wpk: from an ONNX model to the fastest provably correct engine for an NVIDIA GPU.

    wpk.optimize("model.onnx", "model.plan", target="h200", precision="fp16")
    with wpk.load("model.plan", device="cpu") as engine:
        outputs = engine.run({"input": array})

Every error that is the caller's or the environment's to solve is a `WpkError`, and says what to do.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from wpk.version import VERSION

if TYPE_CHECKING:
    from wpk import targets
    from wpk.commands import Benchmark, Verified, bench, verify
    from wpk.engine import Engine, Profiles, load, load_profiles
    from wpk.errors import (
        CompileError,
        EngineError,
        GraphError,
        LaunchError,
        PlanError,
        ScheduleError,
        TargetError,
        UnsupportedError,
        VerificationError,
        WpkError,
    )
    from wpk.pipeline import optimize, rebuild
    from wpk.plan import PlanBundle, read_plan
    from wpk.progress import Progress, silent
    from wpk.report import ProgressLine
    from wpk.report.plans import write_report
    from wpk.tensorrt_pipeline import optimize_tensorrt

__version__ = VERSION
__all__ = [
    "Benchmark",
    "CompileError",
    "Engine",
    "EngineError",
    "GraphError",
    "LaunchError",
    "PlanBundle",
    "PlanError",
    "Profiles",
    "Progress",
    "ProgressLine",
    "ScheduleError",
    "TargetError",
    "UnsupportedError",
    "VerificationError",
    "Verified",
    "WpkError",
    "__version__",
    "bench",
    "load",
    "load_profiles",
    "optimize",
    "optimize_tensorrt",
    "read_plan",
    "rebuild",
    "silent",
    "targets",
    "verify",
    "write_report",
]

_ROOMS = {
    "wpk.commands": ("Benchmark", "Verified", "bench", "verify"),
    "wpk.engine": ("Engine", "Profiles", "load", "load_profiles"),
    "wpk.errors": tuple(name for name in __all__ if name.endswith("Error")),
    "wpk.pipeline": ("optimize", "rebuild"),
    "wpk.plan": ("PlanBundle", "read_plan"),
    "wpk.progress": ("Progress", "silent"),
    "wpk.report": ("ProgressLine",),
    "wpk.report.plans": ("write_report",),
    "wpk.tensorrt_pipeline": ("optimize_tensorrt",),
}
"""Where the names above are, so that ``import wpk`` stays light: each is imported on first use."""


def __getattr__(name: str) -> object:
    """Resolve ``wpk.optimize`` and its like on first use."""
    if name == "targets":
        return import_module("wpk.targets")
    for room, names in _ROOMS.items():
        if name in names:
            value = globals()[name] = getattr(import_module(room), name)
            return value
    raise AttributeError(f"module 'wpk' has no attribute {name!r}")


def __dir__() -> list[str]:
    """All that this module offers, whether it was used already or not."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
