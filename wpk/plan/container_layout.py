"""Every byte of a plan's zip that is not a member's own, as `wpk.plan.container` writes it.

A zip leaves room for more than its members: in front of them, between, behind, in comments and extra
fields. A plan has nothing there. So a plan is one thing to all programs that read it, and whatever is
changed in it is noticed: what is not here is covered by a digest.

Format: PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.3, and Python's `zipfile`.
"""

import struct
import zipfile
from typing import BinaryIO

_DATE = (0, 0x21)
"""Time and day of 1 January 1980."""

_PLAIN, _LARGE = 20, 45
"""Versions of the format: without and with sizes of 64 bits."""

_UNIX_FILE = 0o644 << 16
_FULL = 0xFFFFFFFF


def differs(stream: BinaryIO, archive: zipfile.ZipFile) -> str | None:
    """Where a zip holds anything but its stored members, in words; None if it does not.

    Args:
        stream: The file.
        archive: The same, read; names are ASCII, and nothing is compressed.
    """
    position = 0
    entries = b""
    for info in archive.infolist():
        large = _at(stream, position + 4, 1) == bytes([_LARGE])
        expected = _local_header(info, large)
        if info.header_offset != position or _at(stream, position, len(expected)) != expected:
            return f"in front of member {info.filename!r}"
        position += len(expected) + info.file_size
        entries += _entry(info, large)
    tail = entries + _end(len(archive.infolist()), len(entries), position)
    if _at(stream, position, len(tail) + 1) != tail:
        return "behind its last member"
    return None


def _at(stream: BinaryIO, position: int, size: int) -> bytes:
    stream.seek(position)
    return stream.read(size)


def _local_header(info: zipfile.ZipInfo, large: bool) -> bytes:
    written = zipfile.ZipInfo(info.filename)  # of 1 January 1980
    written.CRC, written.file_size, written.compress_size = info.CRC, *(info.file_size,) * 2
    return written.FileHeader(zip64=large)


def _end(count: int, size: int, start: int) -> bytes:
    """What follows the directory of ``count`` members and ``size`` bytes that begins at ``start``."""
    end, limit = b"", zipfile.ZIP64_LIMIT
    if start > limit or size > limit:  # of members there are never so many
        counted = (count, count, size, start)
        end += struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, _LARGE, _LARGE, 0, 0, *counted)
        end += struct.pack("<4sLQL", b"PK\x06\x07", 0, start + size, 1)
    last = (b"PK\x05\x06", 0, 0, count, count, min(size, _FULL), min(start, _FULL), 0)
    return end + struct.pack("<4s4H2LH", *last)


def _entry(info: zipfile.ZipInfo, large: bool) -> bytes:
    name, sizes, offset = info.filename.encode(), info.file_size, info.header_offset
    wide: list[int] = []
    if info.file_size > zipfile.ZIP64_LIMIT:
        wide, sizes = [info.file_size, info.file_size], _FULL
    if info.header_offset > zipfile.ZIP64_LIMIT:
        wide, offset = [*wide, info.header_offset], _FULL
    extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
    version = _LARGE if large or wide else _PLAIN
    head = struct.pack(
        "<4sBBHHHHHLLLHHHHHLL",
        *(b"PK\x01\x02", version, 3, version, 0, zipfile.ZIP_STORED, *_DATE, info.CRC),
        *(sizes, sizes, len(name), len(extra), 0, 0, 0, _UNIX_FILE, offset),
    )
    return head + name + extra
