"""What figures were taken with."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import wpk
from wpk.build import load_nvrtc

_PACKAGES = {
    "cudnn": "nvidia-cudnn-cu13",
    "cudnn_frontend": "nvidia-cudnn-frontend",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "torch": "torch",
    "torchvision": "torchvision",
    "transformers": "transformers",
}

NONE = "none"

_ROOT = Path(__file__).parents[2]


def machine() -> dict[str, str]:
    """GPU, driver and versions; what is not there is called ``none``."""
    gpu, driver = _gpu()
    return {
        "gpu": gpu,
        "driver": driver,
        "cuda_driver_api": _cuda(),
        "nvrtc": load_nvrtc().identity,
        "wpk": wpk.__version__,
        "python": platform.python_version(),
        **{name: _package(package) for name, package in _PACKAGES.items()},
    }


def checked_out() -> str:
    """The commit of this checkout; ``unknown`` in a copy, of which an option ``--commit`` says it."""
    try:
        said = subprocess.run(
            ["git", "-C", str(_ROOT), "describe", "--always", "--dirty"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return said.stdout.strip()


def _gpu() -> tuple[str, str]:
    """Name and driver of the first GPU that CUDA would show this process."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").partition(",")[0] or "0"
    query = ["nvidia-smi", f"--id={first}", "--query-gpu=name,driver_version"]
    try:
        said = subprocess.run(
            [*query, "--format=csv,noheader"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return NONE, NONE
    name, _, driver = said.stdout.strip().partition(", ")
    return name, driver


def _cuda() -> str:
    """The newest CUDA that the driver supports."""
    try:
        from cuda.bindings import driver

        status, number = driver.cuDriverGetVersion()
    except (ImportError, RuntimeError):  # no bindings, or no driver to bind to
        return NONE
    return f"{number // 1000}.{number % 1000 // 10}" if int(status) == 0 else NONE


def _package(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return NONE
