"""An engine of the C API (``plugins/c_api/wpk.h``), called from Python so that both can be compared in one process."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Self

from rows.base import RowError

BUILD_VARIABLE = "WPK_BUILD"
"""Names the folder that CMake built in; by default the one that CMakeLists.txt names."""

INPUT, OUTPUT = 0, 1


def built(*parts: str) -> Path:
    """A file of CMake's build.

    Raises:
        RowError: There is none.
    """
    root = os.environ.get(BUILD_VARIABLE) or Path(__file__).parents[2] / "build" / "cmake"
    path = Path(root, "plugins", *parts)
    if not path.exists():
        raise RowError(
            f"{path} is missing: cmake -S . -B build/cmake && cmake --build build/cmake, or set "
            f"{BUILD_VARIABLE}"
        )
    return path


class CEngine:
    """A plan that the C API opened, in the CUDA context that is current."""

    def __init__(self, plan: Path) -> None:
        """Open it.

        Raises:
            RowError: The library is not built, or refuses.
        """
        self._library = ctypes.CDLL(str(built("c_api", "libwpk.so")))
        self._library.wpk_last_error.restype = ctypes.c_char_p
        self._engine = ctypes.c_void_p()
        self._call("open", os.fsencode(plan), ctypes.byref(self._engine))

    def bind(self, direction: int, addresses: list[int]) -> None:
        """Say where all inputs, or all outputs, lie."""
        for number, address in enumerate(addresses):
            self._call(
                "bind_number",
                self._engine,
                direction,
                ctypes.c_size_t(number),
                ctypes.c_uint64(address),
            )

    def set_dimension(self, name: str, size: int) -> None:
        """Give a free dimension another size."""
        self._call("set_dimension", self._engine, name.encode(), ctypes.c_int64(size))

    def capture(self) -> None:
        """Make runs ready."""
        self._call("capture", self._engine)

    def run(self, stream: int) -> None:
        """Start one."""
        self._call("run", self._engine, ctypes.c_void_p(stream))

    def __enter__(self) -> Self:
        """Return the engine itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""
        self._call("close", self._engine)

    def _call(self, name: str, *arguments: object) -> None:
        if getattr(self._library, f"wpk_{name}")(*arguments):
            raise RowError(self._library.wpk_last_error().decode())
