"""The library of plugins, loaded into TensorRT's registry."""

import os
from pathlib import Path

from wpk.nvinfer import Binding, TensorRTError
from wpk.tensorrt.hosting.plugin_nodes import NAME, NAMESPACE, VERSION

_BUILD = (
    "build it from a checkout: cmake -S . -B build/cmake -DWPK_TENSORRT_INCLUDE=DIR && "
    "cmake --build build/cmake; it is build/cmake/plugins/tensorrt/libwpk_tensorrt.so"
)


def load_plugins(binding: Binding, library: Path) -> None:
    """Load ``libwpk_tensorrt.so``, for the rest of the process.

    Raises:
        TensorRTError: TensorRT for RTX takes no plugins; there is no such file; or the library does not bring
            the plugin.
    """
    if binding.rtx:
        raise TensorRTError(
            f"{binding.title} takes no plugins",
            fix="install the full TensorRT, or ask for its own layers only: --plugin-library none",
        )
    if not library.is_file():
        raise TensorRTError(f"there is no plugin library {library}", fix=_BUILD)
    registry = binding.module.get_plugin_registry()
    if registry.get_creator(NAME, VERSION, NAMESPACE) is not None:
        return
    registry.load_library(os.fspath(library.resolve()))
    if registry.get_creator(NAME, VERSION, NAMESPACE) is None:
        raise TensorRTError(
            f"{binding.title} finds no plugin {NAME} version {VERSION} in {library}", fix=_BUILD
        )
