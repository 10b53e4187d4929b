"""Put recorded trials into a tuning store, so that the first network that is tuned begins with experience.

    python benchmarks/teach_store.py --recordings tests/replay/h100 --store ~/.cache/wpk/trials.sqlite

They teach searchers on the GPU that they were recorded on, as long as the templates are of the same version; a problem
that was recorded is found measured only with the same compiler and driver. Doing it again adds them again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from spaces.line_file import read_lines

from wpk.candidate import Maker
from wpk.search.store import RunState, Setup, StoreKey, TuningStore
from wpk.targets import find_target
from wpk.trial import Regime

PROPOSER = "recorded"


def teach(folder: Path, path: Path) -> int:
    """Enter all trials of a folder under a run of their own; return how many.

    Raises:
        SystemExit: There are none.
        StoreError: The store cannot be written.
    """
    known = read_lines(sorted([*folder.glob("spaces-*.jsonl"), *folder.glob("spaces-*.jsonl.xz")]))
    if not known.machines:
        raise SystemExit(f"there is no record in {folder}: see record_spaces.py")
    machine = json.loads((folder / "machine.json").read_text(encoding="utf-8"))
    target = find_target(str(known.machines[0]["target"]))
    setup = Setup(target.name, target.arch, str(machine["nvrtc"]), str(machine["driver"]))
    count = 0
    with TuningStore(path) as store:
        run = store.begin_run(0).id
        for header in known.headers.values():
            maker = Maker(header.template, header.version)
            key = StoreKey(known.problem(header.problem), maker, setup)
            for trial in known.trials(header, maker).values():
                store.record(run, key, replace(trial, proposer=PROPOSER), Regime.WARM)
                count += 1
        store.end_run(run, RunState.FINISHED)
    return count


def main(arguments: Sequence[str] | None = None) -> int:
    """Teach; say how much."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recordings", type=Path, required=True, help="of record_spaces.py")
    parser.add_argument("--store", type=Path, required=True, help="trials.sqlite of a cache folder")
    options = parser.parse_args(arguments)
    print(f"{teach(options.recordings, options.store)} trials entered in {options.store}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
