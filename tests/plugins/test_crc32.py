"""CRC-32 in C++ beside zlib's, of data in pieces of any size."""

import random
import struct
import subprocess
import zlib
from pathlib import Path


def test_is_zlibs(sanitized: Path) -> None:
    draw = random.Random(4)
    sizes = [*range(200), *(draw.randrange(5000) for _ in range(200)), 1 << 20]
    draw.shuffle(sizes)
    pieces = [draw.randbytes(size) for size in sizes]
    done = subprocess.run(
        [sanitized / "plugins" / "tests" / "print_crcs"],
        input=b"".join(struct.pack("<I", len(piece)) + piece for piece in pieces),
        capture_output=True,
        check=True,
        timeout=60,
    )
    expected, crc = [], 0
    for piece in pieces:
        crc = zlib.crc32(piece, crc)
        expected.append(crc)
    assert list(map(int, done.stdout.split())) == expected
