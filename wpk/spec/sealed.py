"""The header of a spec: what it is, how long, and a checksum of its body."""

import struct
import zlib
from enum import IntEnum

MAGIC = b"WPKS"
VERSION = 3
"""Raised whenever an older reader would misunderstand a spec."""


class SpecKind(IntEnum):
    """What a spec describes."""

    OPERATOR = 1
    PLAN = 2


def sealed(kind: SpecKind, body: bytes) -> bytes:
    """A spec: the header, and the body behind it."""
    return struct.pack("<4sHHQI", MAGIC, VERSION, kind, len(body), zlib.crc32(body)) + body
