"""The TensorRT that is installed: `tensorrt`, or `tensorrt_rtx` where only that is."""

import importlib
import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from wpk.nvinfer.errors import TensorRTError

OLDEST = (10, 3)
"""TensorRT 10 is the first with IPluginV3, 10.3 the first whose parser says which nodes it does not know."""

_INSTALL = "install TensorRT (pip install tensorrt), or TensorRT for RTX (pip install tensorrt-rtx)"


@dataclass(frozen=True)
class Binding:
    """A TensorRT that can build engines.

    Attributes:
        module: Its Python module; ``Any``, since neither package ships types for all versions.
        rtx: Whether it is TensorRT for RTX.
        version: As the module states it, e.g. ``10.13.3.9``.
    """

    module: Any
    rtx: bool
    version: str

    @property
    def title(self) -> str:
        """Product and version, for people."""
        return f"TensorRT{' for RTX' if self.rtx else ''} {self.version}"


def find_binding() -> Binding:
    """The TensorRT to build with: the full one where it is installed, else TensorRT for RTX.

    Raises:
        TensorRTError: Neither is installed, one is but its libraries cannot be loaded, or it is
            older than TensorRT 10.3.
    """
    for name in ("tensorrt", "tensorrt_rtx"):
        module = _imported(name)
        if module is not None:
            return binding_of(module, rtx=name == "tensorrt_rtx")
    raise TensorRTError("no TensorRT is installed for this Python", fix=_INSTALL)


def binding_of(module: ModuleType, *, rtx: bool) -> Binding:
    """A module as a binding.

    Raises:
        TensorRTError: It is older than TensorRT 10.3, or states no version.
    """
    version = str(getattr(module, "__version__", ""))
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is None:
        raise TensorRTError(f"module '{module.__name__}' states no version", fix=_INSTALL)
    if not rtx and (int(numbers[1]), int(numbers[2])) < OLDEST:
        raise TensorRTError(
            f"TensorRT {version} is installed; wpk builds with {'.'.join(map(str, OLDEST))} or newer",
            fix="install a newer one: pip install 'tensorrt>=10.3'",
        )
    return Binding(module, rtx, version)


def _imported(name: str) -> ModuleType | None:
    """The module; None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            return None
        raise _unloadable(name, error) from error
    except (ImportError, OSError) as error:
        raise _unloadable(name, error) from error


def _unloadable(name: str, error: Exception) -> TensorRTError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return TensorRTError(
        f"module '{name}' is installed and cannot be loaded: {lines[0]}",
        fix="install it again with its libraries; bindings and libraries must be of one version",
    )
