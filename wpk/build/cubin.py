"""Read what a cubin says about its kernels: registers, frame, code.

A cubin is a 64-bit little-endian ELF file.  The sections used here are ``.text.KERNEL`` (machine
code) and ``.nv.info`` (attributes: a format byte, an attribute byte, then 16 bits that are the value
or the length of what follows).  The attributes are those that cuobjdump calls EIATTR_REGCOUNT and
EIATTR_FRAME_SIZE; their numbers were read from cubins of NVRTC 13.0 and 13.5 and agree with ptxas's
own report.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from wpk.errors import CompileError

_FRAME_SIZE = 0x11
_REGCOUNT = 0x2F
_SIZED_FORMAT = 4  # the 16 bits behind the attribute are a length, not the value
_SYMBOL_BYTES = 24
_SECTION = struct.Struct("<IIQQQQIIQQ")


@dataclass(frozen=True)
class CubinKernel:
    """What a cubin states about one kernel.

    Attributes:
        name: The name of the entry.
        registers: Registers a thread uses.
        frame_bytes: Local memory of a thread's stack frame; above 0 means stack or spills.
        code: The machine code, 16 bytes an instruction.
    """

    name: str
    registers: int
    frame_bytes: int
    code: bytes


@dataclass(frozen=True)
class _Section:
    name: str
    offset: int
    size: int
    link: int


class _Elf:
    """The section table of an ELF file; raises ValueError or struct.error where it is damaged."""

    def __init__(self, data: bytes) -> None:
        if data[:5] != b"\x7fELF\x02":
            raise ValueError("no 64-bit ELF header")
        self._data = data
        (table,) = struct.unpack_from("<Q", data, 0x28)
        entry_bytes, count, names_index = struct.unpack_from("<HHH", data, 0x3A)
        headers = [_SECTION.unpack_from(data, table + i * entry_bytes) for i in range(count)]
        if names_index >= count:
            raise ValueError(f"section {names_index} of {count} should hold the names")
        names_at = headers[names_index][4]
        self.sections = [_Section(self._text(names_at + h[0]), *h[4:7]) for h in headers]

    def content(self, section: _Section) -> bytes:
        end = section.offset + section.size
        if end > len(self._data):
            raise ValueError(f"section {section.name!r} ends at byte {end}")
        return self._data[section.offset : end]

    def find(self, name: str) -> _Section | None:
        return next((section for section in self.sections if section.name == name), None)

    def symbol_names(self) -> list[str]:
        table = self.find(".symtab")
        if table is None or table.link >= len(self.sections):
            raise ValueError("no symbol table")
        names_at = self.sections[table.link].offset
        entries = struct.iter_unpack(f"<I{_SYMBOL_BYTES - 4}x", self.content(table))
        return [self._text(names_at + offset) for (offset,) in entries]

    def attributes(self) -> Iterator[tuple[int, bytes]]:
        """Yield (attribute, its bytes) of ``.nv.info``; nothing where there is none."""
        section = self.find(".nv.info")
        content = b"" if section is None else self.content(section)
        at = 0
        while at < len(content):
            form, attribute, value = struct.unpack_from("<BBH", content, at)
            at += 4
            length = value if form == _SIZED_FORMAT else 0
            yield attribute, content[at : at + length] if length else struct.pack("<H", value)
            at += length

    def _text(self, at: int) -> str:
        return self._data[at : self._data.index(b"\0", at)].decode()


def read_cubin(cubin: bytes) -> dict[str, CubinKernel]:
    """Return every kernel of a cubin by name.

    Raises:
        CompileError: the bytes are no cubin, or are cut off.
    """
    try:
        return _read_kernels(_Elf(cubin))
    except (struct.error, ValueError, IndexError, OverflowError) as error:
        raise CompileError(
            f"{len(cubin)} bytes are no readable cubin: {error}",
            fix="compile the kernel again; if it came from a cache, remove that entry first",
        ) from error


def _read_kernels(elf: _Elf) -> dict[str, CubinKernel]:
    symbols = elf.symbol_names()
    numbers: dict[tuple[int, str], int] = {}
    for attribute, value in elf.attributes():
        if attribute in (_REGCOUNT, _FRAME_SIZE):
            symbol, number = struct.unpack_from("<II", value)
            numbers[attribute, symbols[symbol]] = number
    kernels = {}
    for section in elf.sections:
        name = section.name.removeprefix(".text.")
        if name != section.name and (_REGCOUNT, name) in numbers:
            kernels[name] = CubinKernel(
                name=name,
                registers=numbers[_REGCOUNT, name],
                frame_bytes=numbers.get((_FRAME_SIZE, name), 0),
                code=elf.content(section),
            )
    return kernels
