"""Pack the trials of a store into small pieces, to carry them from one machine to another; and unpack them.

    python benchmarks/pack_trials.py build/evidence pieces          # writes pieces/trials-000.xz and so on
    python benchmarks/pack_trials.py --unpack pieces build/evidence

Every store of the folder is packed, those of single networks too, but none of an earlier commit's; compiled
kernels, networks and plans are left out, and are made again where they are missing. Unpacking adds trials to
what is there.
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import sys
from collections.abc import Iterator
from pathlib import Path

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from rows.trials import FILE, stores_in

from wpk.search.store import TuningStore, export_lines, import_lines

MOST_BYTES = 16 << 20
"""Of a piece."""

_PIECE = "trials-*.xz"


def main() -> int:
    """Pack or unpack; say how much."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("given", type=Path, metavar="FOLDER", help="what is packed, or unpacked")
    parser.add_argument("made", type=Path, metavar="FOLDER", help="where to")
    parser.add_argument("--unpack", action="store_true")
    options = parser.parse_args()
    if options.unpack:
        print(f"{unpack(options.given, options.made)} trials added in {options.made}")
        return 0
    pieces = pack(options.given, options.made)
    print(f"{len(pieces)} pieces, {sum(each.stat().st_size for each in pieces)} bytes")
    return 0


def pack(store: Path, folder: Path, most_bytes: int = MOST_BYTES) -> list[Path]:
    """Write the trials of all stores in a folder as pieces of at most so many bytes.

    Raises:
        SystemExit: There are no trials, or pieces lie there already.
    """
    stores = stores_in(store)
    if not stores:
        raise SystemExit(f"no {FILE} in {store}")
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.glob(_PIECE)):
        raise SystemExit(
            f"pieces lie in {folder} already: a new one must not stand beside old ones"
        )
    text = "".join(line for path in stores for line in _lines(path, store))
    packed = lzma.compress(text.encode())
    pieces = []
    for number, begin in enumerate(range(0, len(packed), most_bytes)):
        piece = folder / _PIECE.replace("*", f"{number:03}")
        piece.write_bytes(packed[begin : begin + most_bytes])
        pieces.append(piece)
    return pieces


def unpack(folder: Path, store: Path) -> int:
    """Add the trials of pieces to stores at the same places of a folder; return how many were new.

    Raises:
        SystemExit: There are no pieces, or they are damaged.
        StoreError: They are of another schema.
    """
    pieces = sorted(folder.glob(_PIECE))
    if not pieces:
        raise SystemExit(f"no {_PIECE} in {folder}")
    try:
        text = lzma.decompress(b"".join(each.read_bytes() for each in pieces)).decode()
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise SystemExit(
            f"the pieces in {folder} are damaged, or one is missing: {error}"
        ) from error
    lines, added = io.StringIO(text), 0
    while heading := lines.readline():
        place = json.loads(heading)
        path = store / place["store"]
        path.parent.mkdir(parents=True, exist_ok=True)
        its = [lines.readline() for _ in range(place["lines"])]
        with TuningStore(path) as opened:
            added += import_lines(opened, its, str(path), None).added
    return added


def _lines(path: Path, root: Path) -> Iterator[str]:
    """What a store exports, after a line that says where it lies and how many lines follow."""
    with TuningStore(path) as opened:
        exported = list(export_lines(opened))
    place = {"store": str(path.relative_to(root)), "lines": len(exported)}
    return iter([json.dumps(place) + "\n", *exported])


if __name__ == "__main__":
    sys.exit(main())
