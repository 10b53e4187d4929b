"""wpk: from an ONNX model to the fastest provably correct engine for an NVIDIA GPU."""

from typing import Any

from wpk.version import VERSION

__version__ = VERSION
__all__ = ["__version__", "load", "optimize", "optimize_tensorrt"]


def __getattr__(name: str) -> Any:
    """Resolve ``wpk.optimize`` and its like on first use, so that ``import wpk`` stays light."""
    if name == "optimize":
        from wpk.pipeline import optimize

        return optimize
    if name == "optimize_tensorrt":
        from wpk.tensorrt_pipeline import optimize_tensorrt

        return optimize_tensorrt
    if name == "load":
        from wpk.engine import load

        return load
    raise AttributeError(f"module 'wpk' has no attribute {name!r}")
