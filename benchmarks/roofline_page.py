"""Write docs/roofline.md: what every schedule template reaches, from a file of results.

    python benchmarks/roofline_page.py benchmarks/results/h200-evidence.json docs/roofline.md

The rows are `roofline.TEMPLATE` of benchmarks/evidence.py; templates that the file does not hold are named
as not measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from rows.markdown import table_head, table_row
from rows.result_file import Record, ResultFile
from rows.roofline_models import STUDIES

from wpk.performance.bound import fastest_unit
from wpk.targets.registry import find_target
from wpk.targets.target import Target

_HEAD = """\
# What the templates reach

Written by `benchmarks/roofline_page.py` from `{name}`; `python benchmarks/evidence.py --only 'roofline.*'`
measures again. Each line is the fastest kernel of the template that tuning tried for a problem, correct
before it was timed, whether or not another template beats it there. TFLOP/s count the operations of the
direct algorithm, TB/s the distinct bytes touched; both beside the peak of the GPU's data sheet. `bound` is
the part of the speed that the roofline allows. Where caches are warm, bytes may come from L2, faster than
global memory. Times are medians with their noise band.
"""

_COLUMNS = (
    "problem",
    "time, µs",
    "TFLOP/s",
    "TB/s",
    "bound",
    "by",
    "caches",
    "registers",
    "spilled",
    "shared, B",
    "compile, s",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path, metavar="FILE.json")
    parser.add_argument("output", type=Path, metavar="PAGE.md")
    options = parser.parse_args(arguments)
    if not options.results.is_file():
        raise SystemExit(f"there is no {options.results}")
    text = page(options.results.name, ResultFile(options.results).records)
    options.output.write_text(text, encoding="utf-8")
    return 0


def page(name: str, records: Mapping[str, Record]) -> str:
    """The page of a file of results.

    Raises:
        SystemExit: It holds no template.
    """
    found = {t: records.get(f"roofline.{t}", {}) for t in STUDIES}
    measured = {t: record for t, record in found.items() if "figures" in record}
    if not measured:
        raise SystemExit(f"{name} holds no row of roofline.*: measure them first")
    parts = [_HEAD.format(name=name), *(_section(t, r) for t, r in measured.items())]
    missing = [f"`{template}`" for template in found.keys() - measured.keys()]
    if missing:
        parts.append(f"Not measured: {', '.join(sorted(missing))}.\n")
    return "\n".join(parts)


def _section(template: str, record: Record) -> str:
    figures, machine = record["figures"], record["machine"]
    target = find_target(figures["target"])
    place = f"{machine['gpu']}, driver {machine['driver']}, {machine['nvrtc']}"
    when = f"{record['date'][:10]}, {record['commit']}"
    lines = [
        f"## {template}",
        "",
        f"{place}; {when}. {_peaks(template, target)}",
        "",
        *table_head(_COLUMNS),
        *(table_row(_cells(point)) for point in figures["sizes"].values()),
        "",
        *(f"- {point['problem']}: `{point['schedule']}`" for point in figures["sizes"].values()),
    ]
    return "\n".join(lines) + "\n"


def _peaks(template: str, target: Target) -> str:
    precision = STUDIES[template].precision
    units = {"ordinary cores": target.peak_ordinary}
    unit, peak = fastest_unit(precision, target)
    units |= {unit: peak}
    told = ", ".join(f"{name} {rate / 1e12:.0f}" for name, rate in units.items())
    return (
        f"Peaks in {precision}: {told} TFLOP/s; global memory {target.global_bandwidth / 1e12:.1f}, "
        f"L2 {target.l2_bandwidth / 1e12:.1f} TB/s."
    )


def _cells(point: Mapping[str, Any]) -> list[str]:
    low, high = point["low_seconds"] * 1e6, point["high_seconds"] * 1e6
    return [
        point["problem"],
        f"{point['median_seconds'] * 1e6:.2f} ({low:.2f} to {high:.2f})",
        f"{point['flops'] / 1e12:.3g}",
        f"{point['bandwidth'] / 1e12:.3g}",
        f"{point['of_bound']:.0%}",
        point["limiter"],
        point["regime"],
        str(point["registers"]),
        str(point["spilled_bytes"]),
        str(point["shared_bytes"]),
        f"{point['compile_seconds']:.2f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
