"""The source of one kernel: a generated unit of a few lines, and the headers it includes.

The same unit is compiled by NVRTC for the GPU and by the host compiler for the emulator; one digest
over the unit and its headers stands for both.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wpk.errors import CompileError

_PACKAGE = Path(__file__).parent
_INCLUDE = re.compile(r"^\s*#\s*include\s+<(wpk/[^>]+)>", re.MULTILINE)


@dataclass(frozen=True)
class KernelSource:
    """A translation unit with one kernel.

    Attributes:
        entry: Unmangled name of the kernel, e.g. ``wpk_conv_mma``.
        text: The unit: includes and one instantiation.
    """

    entry: str
    text: str

    def headers(self) -> dict[str, str]:
        """All ``<wpk/...>`` headers that the unit includes, transitively: include name to text.

        The emulator's own headers (``wpk/emulator/``) are left out: they are no part of the kernel.

        Raises:
            CompileError: A header does not exist.
        """
        found: dict[str, str] = {}
        pending = _INCLUDE.findall(self.text)
        while pending:
            name = pending.pop()
            if name in found or name.startswith("wpk/emulator/"):
                continue
            found[name] = _read_header(name)
            pending.extend(_INCLUDE.findall(found[name]))
        return dict(sorted(found.items()))

    @property
    def digest(self) -> str:
        """SHA-256 of the entry, the unit and its headers, as 64 hexadecimal digits."""
        return _digest(self)


@cache
def _digest(source: KernelSource) -> str:
    digest = hashlib.sha256()
    for part in (source.entry, source.text, *(x for kv in source.headers().items() for x in kv)):
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode())
    return digest.hexdigest()


@cache
def _read_header(name: str) -> str:
    try:
        return (_PACKAGE / name.removeprefix("wpk/")).read_text(encoding="utf-8")
    except OSError as error:
        raise CompileError(
            f"header <{name}> cannot be read: {error}",
            fix="reinstall wpk: its device headers are part of the package",
        ) from error
