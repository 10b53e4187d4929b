"""Read what a cubin says about its kernels: registers, frame, static shared memory, code.

A cubin is a 64-bit little-endian ELF file.  The sections used here are ``.text.KERNEL`` (machine code),
``.nv.shared.KERNEL`` (static shared memory) and ``.nv.info`` (attributes: format byte, attribute byte, then
16 bits that are the value or the length of what follows).  The attribute numbers are those that
``cuobjdump -elf`` prints as EIATTR_REGCOUNT, EIATTR_FRAME_SIZE and EIATTR_MAX_THREADS; they were read
from cubins of NVRTC 13.0 and 13.5 and agree with ptxas's own report.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from wpk.errors import CompileError

_FRAME_SIZE = 0x11
_REGCOUNT = 0x2F
_MAX_THREADS = 0x05
_SIZED_FORMAT = 4  # the 16 bits behind the attribute are a length, not the value
_HEADER_BYTES = 64
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True)
class CubinKernel:
    """What a cubin states about one kernel.

    Attributes:
        name: The entry's name.
        registers: Registers a thread uses.
        frame_bytes: Bytes of local memory a thread's stack frame takes; above 0 means stack or spills.
        shared_section_bytes: Static shared memory, with the 1024 bytes that sm_90 and later reserve.
        max_threads: The launch bound, None where the kernel states none.
        code: The machine code, 16 bytes an instruction.
    """

    name: str
    registers: int
    frame_bytes: int
    shared_section_bytes: int
    max_threads: int | None
    code: bytes


@dataclass(frozen=True)
class _Section:
    name: str
    content: bytes
    link: int


def read_cubin(cubin: bytes) -> dict[str, CubinKernel]:
    """Return every kernel of a cubin by name.

    Raises:
        CompileError: the bytes are no cubin, or are cut off.
    """
    try:
        return _read(cubin)
    except (struct.error, IndexError, ValueError) as error:
        raise CompileError(
            f"{len(cubin)} bytes are not a readable cubin: {error}",
            fix="compile the kernel again; a cached cubin may be damaged",
        ) from error


def _read(cubin: bytes) -> dict[str, CubinKernel]:
    sections = _sections(cubin)
    symbols = _symbol_names(sections)
    registers: dict[str, int] = {}
    frames: dict[str, int] = {}
    for attribute, value in _attributes(sections, ".nv.info"):
        if attribute in (_REGCOUNT, _FRAME_SIZE) and isinstance(value, bytes):
            symbol, number = struct.unpack_from("<II", value)
            (registers if attribute == _REGCOUNT else frames)[symbols[symbol]] = number
    shared = {name: len(section.content) for name, section in sections.items()}
    return {
        kernel: CubinKernel(
            name=kernel,
            registers=registers[kernel],
            frame_bytes=frames.get(kernel, 0),
            shared_section_bytes=shared.get(f".nv.shared.{kernel}", 0),
            max_threads=_max_threads(sections, kernel),
            code=section.content,
        )
        for name, section in sections.items()
        if (kernel := name.removeprefix(".text.")) != name and kernel in registers
    }


def _sections(cubin: bytes) -> dict[str, _Section]:
    if len(cubin) < _HEADER_BYTES or cubin[:4] != b"\x7fELF" or cubin[4] != 2:
        raise ValueError("no 64-bit ELF header")
    (table,) = struct.unpack_from("<Q", cubin, 0x28)
    entry_bytes, count, names_index = struct.unpack_from("<HHH", cubin, 0x3A)
    raw = [_SECTION.unpack_from(cubin, table + i * entry_bytes) for i in range(count)]
    names = _content(cubin, raw[names_index])
    found = {}
    for header in raw:
        name = _text_at(names, header[0])
        found[name] = _Section(name, _content(cubin, header), header[6])
    found[""] = _Section("", b"", 0)
    ordered = [_text_at(names, header[0]) for header in raw]
    found["*order*"] = _Section("*order*", "\0".join(ordered).encode(), 0)
    return found


def _content(cubin: bytes, header: tuple[int, ...]) -> bytes:
    kind, offset, size = header[1], header[4], header[5]
    holds_no_bytes = kind == 8  # SHT_NOBITS: only a size, as for shared memory
    if holds_no_bytes:
        if size > 1 << 20:
            raise ValueError(f"a section of {size} bytes without content")
        return bytes(size)
    if offset + size > len(cubin):
        raise ValueError(f"a section ends at byte {offset + size}")
    return cubin[offset : offset + size]


def _text_at(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode()
