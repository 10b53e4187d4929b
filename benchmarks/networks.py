"""Whole networks on this machine's GPU: what the models choose, what measuring makes of it, tuning time.

    python benchmarks/networks.py --only 'tv_resnet18.dynamo.*' --output results.json

For each row ``NETWORK.PRECISION``: a plan without measuring and a measured one (``--effort``), each
checked by ``wpk optimize`` itself; the second run of the same command, which finds every trial in the
store; and ``wpk bench`` of both plans. Whole-engine times are medians of CUDA-graph replays. Rows that
the output file holds are kept.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "models"))

import onnx
import refill

PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
ROWS = [
    f"{network}.{precision}"
    for network in refill.model_names()
    if "rnn" not in network
    for precision in PRECISIONS
]


def measure(row: str, effort: int, folder: Path) -> dict[str, Any]:
    """Optimize a network with and without measuring, and time both plans."""
    network, precision = row.rsplit(".", 1)
    model = folder / f"{network}.onnx"
    onnx.save(refill.refill(network), model)
    common = ["--precision", precision, "--cache", str(folder / "cache")]
    plans = {"models": folder / "models.plan", "measured": folder / "measured.plan"}
    optimize = ["optimize", str(model), "--target", "auto", *common]
    _wpk(*optimize, "-o", str(plans["models"]), "--search", "static")
    tuned = [*optimize, "-o", str(plans["measured"]), "--effort", str(effort)]
    record: dict[str, Any] = {
        "effort": effort,
        "tuning_seconds": _wpk(*tuned)[0],
        "again_seconds": _wpk(*tuned)[0],
    }
    for name, plan in plans.items():
        bench = json.loads(_wpk("bench", str(plan), "--json")[1])
        record[name] = {key: bench["engine"][key] for key in ("median", "p99", "band")}
        record["device"], record["cuda_driver_api"] = bench["device"], bench["cuda_driver_api"]
    return record


def _wpk(*arguments: str) -> tuple[float, str]:
    """Seconds and standard output of a command."""
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "wpk", *arguments], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"wpk {' '.join(arguments)} failed with exit code {done.returncode}")
    return time.perf_counter() - begun, done.stdout


def main() -> None:
    """Measure the rows asked for that the output file does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="ROW", default="*", help="rows, with wildcards")
    parser.add_argument("--effort", type=int, default=1)
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "networks.json"
    )
    parser.add_argument("--commit", default="unknown", help="of this repository, for the record")
    options = parser.parse_args()
    held = json.loads(options.output.read_text()) if options.output.is_file() else {"rows": {}}
    held["commit"], held["date"] = options.commit, datetime.now(UTC).date().isoformat()
    held["command"] = "python benchmarks/networks.py --only ROW --output FILE --commit HASH"
    for row in ROWS:
        if fnmatch(row, options.only) and row not in held["rows"]:
            with tempfile.TemporaryDirectory() as folder:
                held["rows"][row] = record = measure(row, options.effort, Path(folder))
            options.output.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n")
            print(row, json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
