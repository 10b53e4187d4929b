"""Pack the wpk of an earlier commit, for rows `since.*` on a machine without the history.

    python benchmarks/pack_earlier.py              # the commit that they compare with by default
    python benchmarks/pack_earlier.py bfc01fc0     # prints build/earlier/bfc01fc0.tar.gz

Where `benchmarks/evidence.py` runs in a checkout with the commit in its history it does this itself. A copy of a
checkout needs the file in the same place.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from rows.base import EARLIER, RowError
from subjects.earlier import ROOT, commit_id, packed


def main(arguments: Sequence[str] | None = None) -> int:
    """Pack, and print where the archive lies; 1 where there is no such commit."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("commit", nargs="?", type=commit_id, default=EARLIER, metavar="COMMIT")
    options = parser.parse_args(arguments)
    try:
        path = packed(options.commit)
    except RowError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
