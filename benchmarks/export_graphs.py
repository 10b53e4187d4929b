"""Write the graphs of the kept list, or others, by their exporters; needs torch and its libraries.

    python -m venv exporting
    exporting/bin/pip install torch torchvision transformers timm onnxscript onnxruntime scikit-learn skl2onnx
    exporting/bin/python benchmarks/export_graphs.py                     # the whole list, anew
    exporting/bin/python benchmarks/export_graphs.py hf_bert.dynamo.batch
    exporting/bin/python benchmarks/export_graphs.py --draw 7 20 --archive drawn.zip

Each is written in a process of its own, since exporters fail in many ways; which did, and why, is printed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from exporters import catalogue, store
from exporters.architecture import Export

SECONDS = 300.0
"""After which an exporter is given up."""


def main() -> int:
    """Write what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME.EXPORTER.FREE")
    parser.add_argument("--draw", nargs=2, type=int, metavar=("SEED", "COUNT"))
    parser.add_argument("--archive", type=Path, default=store.ARCHIVE)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        return _write_here(Export.parse(options.names[0]), options.archive)
    wanted = [Export.parse(name) for name in options.names] or catalogue.kept()
    count = len(wanted)
    if options.draw:
        seed, count = options.draw
        wanted = catalogue.drawn(seed)
    written = 0
    for each in wanted:
        if written < count:
            written += _write(each, options.archive)
    print(f"{written} of {count} graphs written, {options.archive.stat().st_size} bytes in all")
    return 0 if written == count else 1


def _write(wanted: Export, archive: Path) -> bool:
    began = time.monotonic()
    command = [sys.executable, __file__, str(wanted), "--archive", str(archive), "--here"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        failed = done.returncode != 0
        why = (done.stderr.strip().splitlines() or ["it was killed"])[-1] if failed else ""
    except subprocess.TimeoutExpired:
        failed, why = True, f"longer than {SECONDS:.0f} s"
    words = f"not written: {why[:200]}" if failed else "written"
    print(f"{wanted!s:48} {time.monotonic() - began:6.1f} s  {words}", flush=True)
    return not failed


def _write_here(wanted: Export, archive: Path) -> int:
    from exporters.writing import export

    store.write({str(wanted): export(catalogue.architectures()[wanted.name], wanted)}, archive)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
