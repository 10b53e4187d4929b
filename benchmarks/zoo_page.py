"""Write docs/zoo.md: every network of the zoo that was measured beside PyTorch, from files of results.

    python benchmarks/zoo_page.py benchmarks/results/h200-zoo.json benchmarks/results/h100-zoo.json docs/zoo.md

Of a row that several files hold, the latest that was measured counts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from rows.goals import geometric_mean
from rows.markdown import table_head, table_row
from rows.networks import OURS
from rows.result_file import Record, ResultFile, newest
from rows.zoo import ZooCase, cases, counted
from zoo.catalogue import DRAWN_PREFIX

from wpk.dtypes import Precision

_HEAD = """\
# The zoo, network by network

Written by `benchmarks/zoo_page.py` from {names}; `python benchmarks/evidence.py --only 'zoo.*'` measures again, and
[docs/benchmarks.md](benchmarks.md#the-zoo) says how. Each network was tuned from an empty store, and stands beside
the best of PyTorch eager and compiled with freezing, both sides as CUDA graphs that take turns. The slowest come first.
`forms` is how many times as fast the chosen form of the model is as the fastest engine of the form that passes make by
rule; `slowest` is the problem whose operators lose most to their bound, and what part of all operators' time they take.
What is refused, inconclusive or wrong counts as half as fast as PyTorch. Budgets were 40 s up to commit d1c854cb, of which measuring got 32 s
whatever else there was to do, and are 60 s since c6db4811, to which a run is kept
([decision 75](decisions/0075-what-tuning-costs-beside-measuring.md)). What timm's list gave was drawn once, by the commit that was measured, into
`benchmarks/zoo/drawn.json`.
"""

_COLUMNS = (
    *("network", "GPU", "wpk, µs", "PyTorch, µs", "times as fast", "forms", "tuning, s"),
    *("operators", "slowest", "commit"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path, nargs="+", metavar="FILE.json")
    parser.add_argument("output", type=Path, metavar="PAGE.md")
    options = parser.parse_args(arguments)
    missing = [str(path) for path in options.results if not path.is_file()]
    if missing:
        raise SystemExit(f"there is no {', '.join(missing)}")
    records = newest(ResultFile(path).records for path in options.results)
    text = page([path.name for path in options.results], records)
    options.output.write_text(text, encoding="utf-8")
    return 0


def page(names: Sequence[str], records: Mapping[str, Record]) -> str:
    """The page of these records.

    Raises:
        SystemExit: They hold no network of the zoo.
    """
    found = {case: r for case in cases() if "figures" in (r := records.get(f"zoo.{case}", {}))}
    if not found:
        raise SystemExit(f"{', '.join(names)} hold no row of zoo.*: measure them first")
    told = ", ".join(f"`{name}`" for name in names)
    return "\n".join([_HEAD.format(names=told), *_sections(found)])


def _sections(found: Mapping[ZooCase, Record]) -> list[str]:
    ways: dict[str, dict[ZooCase, Record]] = {}
    for case, record in found.items():
        batch = "batch 1" if case.batch == 1 else "more than one image or sentence"
        strict = "strict fp32" if case.precision is Precision.FP32 else str(case.precision)
        drawn = ", drawn of timm's list" if case.network.startswith(DRAWN_PREFIX) else ""
        ways.setdefault(f"{strict}, {batch}{drawn}", {})[case] = record
    return [_section(way, held) for way, held in ways.items()]


def _section(way: str, held: Mapping[ZooCase, Record]) -> str:
    ratios = {case: counted(record["figures"]) for case, record in held.items()}
    mean = geometric_mean(list(ratios.values())).median
    tuned = [
        r["figures"]["tuning_seconds"] for r in held.values() if "tuning_seconds" in r["figures"]
    ]
    took = ""
    if tuned:
        took = f" Tuning took {median(tuned):.0f} s (median), {max(tuned):.0f} s at the most."
    lines = [
        f"## {way}",
        "",
        f"{len(held)} measured; geometric mean {mean:.2f}, least {min(r.median for r in ratios.values()):.2f}.{took}",
        "",
        *table_head(_COLUMNS),
        *(
            table_row(_cells(case, held[case]))
            for case in sorted(held, key=lambda c: ratios[c].median)
        ),
    ]
    return "\n".join(lines) + "\n"


def _cells(case: ZooCase, record: Record) -> list[str]:
    figures = record["figures"]
    gpu = record["machine"]["gpu"].split()[1]
    network = case.network.removeprefix(DRAWN_PREFIX)
    name = network if case.batch == 1 else f"{network}, {case.batch}"
    if "refused" in figures:
        return [name, gpu, "refused", *[""] * 6, record["commit"][:8]]
    times = {way: t["median_seconds"] for way, t in figures["times"].items()}
    best = min(seconds for way, seconds in times.items() if way != OURS)
    forms, tuning = figures.get("forms"), figures.get("tuning_seconds")
    return [
        name,
        gpu,
        f"{times[OURS] * 1e6:.1f}",
        f"{best * 1e6:.1f}",
        f"{counted(figures).median:.2f}",
        "" if forms is None else f"{forms['speedup']['median']:.2f}",
        "" if tuning is None else f"{tuning:.0f}",
        str(figures["plan"]["operators"]),
        _slowest(figures),
        record["commit"][:8],
    ]


def _slowest(figures: Mapping[str, Any]) -> str:
    worst = figures["beyond_bound"][0]
    share = worst["seconds"] / figures["plan"]["operators_seconds"]
    return f"{worst['operators']} of {worst['problem']}: {share:.0%}"


if __name__ == "__main__":
    sys.exit(main())
