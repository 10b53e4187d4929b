"""Find out which forms of today have the partitions that were fixed before forms competed, and without which passes.

    python benchmarks/fix_partition.py
    python benchmarks/fix_partition.py --only vit.b1 swin.b32 --store build/evidence
    python benchmarks/fix_partition.py --only graphs

For each network and batch the passes of `COMMIT` are run as they were (`git archive`, in a process of its own). Then newer passes are
left out, and choices of the others decided otherwise, until the partition is as near to theirs as it gets (`zoo.nearest_form`).
What is found is written to benchmarks/zoo/fixed_partition.json, with the operators in which both still differ; a table says what
the models make of the two forms on the target. No GPU is needed; networks that the store has not are exported there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

import onnx
from zoo import operators
from zoo.catalogue import find
from zoo.fixed import PARTITIONS, FixedForm, FixedPartitions, fixed_partitions, keep
from zoo.lowered_forms import Decisions, LoweredForms
from zoo.nearest_form import nearest, tried, words
from zoo.small_graphs import NAMES, small_graph

from wpk.lowering.lowered_model import LoweredModel
from wpk.report import format_table
from wpk.search.forms import Estimates, Form, Forms, beginning, form_of, kinds_in_order
from wpk.targets import find_target

COMMIT = "bfc01fc0"
"""The last one at which passes joined by rule alone, and nothing was measured of it."""

NETWORKS = (
    *("resnet", "resnext", "mobilenet-v2", "mobilenet-v3", "efficientnet", "googlenet"),
    *("squeezenet", "convnext", "vit", "deit", "swin", "bert", "gpt2"),
)
"""Families of the zoo, of all kinds that it has many of: convolutions, attention, and both."""

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Find the forms, and write them down."""
    options = _parser().parse_args()
    is_known = options.output.is_file()
    known = fixed_partitions(options.output) if is_known else FixedPartitions(COMMIT, ())
    forms = {(each.network, each.batch): each for each in (*known.forms, *known.graphs)}
    table = list[list[str]]()
    with tempfile.TemporaryDirectory(prefix="wpk-older-") as folder:
        older = _checked_out(Path(folder))
        for network, batch in _asked(options.only):
            is_small = network in NAMES
            model = (
                small_graph(network, older) if is_small else _model(options.store, network, batch)
            )
            then, here = made_then(older, model), LoweredForms(model)
            usual, exporter = here.lowered(), _exporter(model)
            before = forms.get((network, batch), FixedForm(network, batch, "", (), (), 0, 0, 0))
            form = fixed_form(replace(before, exporter=exporter), here, usual, then)
            forms[network, batch] = form
            estimates = Estimates(find_target(options.target))
            table.append([*_counts(form), *_predicted(here, form, usual, estimates)])
            sys.stderr.write(f"{' '.join(table[-1])}\n")
            ordered = [forms[case] for case in sorted(forms)]
            graphs = tuple(each for each in ordered if each.network in NAMES)
            networks = tuple(each for each in ordered if each not in graphs)
            keep(FixedPartitions(COMMIT, networks, graphs), options.output)
    head = ["network", "then", "fixed", "today", "keys", "left out", "differ"]
    print(format_table([*head, "fixed, µs", "passes, µs", "begins with, µs", "times"], table))
    return 0


def _parser() -> argparse.ArgumentParser:
    about, _, more = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        description=about, epilog=more, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--only", nargs="+", metavar="NETWORK.bN|graphs", help="by default all")
    add("--store", type=Path, default=ROOT / "build" / "evidence", metavar="FOLDER")
    add("--output", type=Path, default=PARTITIONS, metavar="FILE.json")
    add("--target", default="h100", help="that estimates are for (default: h100)")
    return parser


def _asked(only: Sequence[str] | None) -> Iterator[tuple[str, int]]:
    """Networks and batches: those that are named, or all; small graphs are of one batch."""
    if only is None or "graphs" in only:
        yield from ((name, 1) for name in NAMES)
    for network in NETWORKS if only is None else ():
        yield from ((network, batch) for batch in (1, find(network).large_batch))
    for text in only or ():
        network, _, batch = text.rpartition(".b")
        if batch.isdecimal():
            yield network, int(batch)
        elif text != "graphs":
            raise SystemExit(f"{text!r} is no NETWORK.bN, such as vit.b1, and not: graphs")


def _checked_out(folder: Path) -> Path:
    """The sources of `COMMIT`, in a folder."""
    archive = folder / "older.tar"
    subprocess.run(
        ["git", "-C", str(ROOT), "archive", "-o", str(archive), COMMIT], check=True, timeout=60
    )
    with tarfile.open(archive) as sources:
        sources.extractall(folder, filter="data")
    return folder


def _model(store: Path, network: str, batch: int) -> Path:
    """The network's file, where rows of the zoo keep it."""
    path = store / "networks" / "zoo" / f"{network}.b{batch}.onnx"
    if not path.is_file():
        script = Path(__file__).with_name("export_zoo.py")
        command = [sys.executable, str(script), network, str(path), "--batch", str(batch)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


def _exporter(model: Path) -> str:
    """What wrote the network's file."""
    written = onnx.load(model, load_external_data=False)
    return f"{written.producer_name} {written.producer_version}"


@dataclass(frozen=True)
class Then:
    """What the older wpk makes of a model.

    Attributes:
        partition: Its operators.
        passes: Names of all passes that there were.
    """

    partition: operators.Partition
    passes: frozenset[str]


def made_then(older: Path, model: Path) -> Then:
    """Run the older passes and lowering."""
    command = [sys.executable, "-P", str(operators.__file__), str(model)]
    environment = os.environ | {"PYTHONPATH": str(older)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{COMMIT} makes no operators of {model.name}:\n{done.stderr}")
    made = json.loads(done.stdout)
    return Then(operators.read(made["operators"]), frozenset(made["passes"]))


def fixed_form(before: FixedForm, here: LoweredForms, usual: LoweredModel, then: Then) -> FixedForm:
    """The form that is nearest to a partition, looked for from the one that was before."""
    newer = {record.name for record in usual.passes} - then.passes
    found = nearest(here.lowered, then.partition, newer, before.decisions)
    only_then, only_here = found.difference(then.partition)
    return replace(
        before,
        changed=tuple(sorted(found.decisions.changed)),
        skipped=tuple(sorted(found.decisions.skipped)),
        then=then.partition.total(),
        operators=found.partition.total(),
        today=tried(usual).partition.total(),
        partition=operators.digest(found.partition),
        only_then=tuple(words(only_then)),
        only_here=tuple(words(only_here)),
    )


def _counts(form: FixedForm) -> Iterator[str]:
    yield f"{form.network}.b{form.batch}"
    yield from map(str, (form.then, form.operators, form.today))
    yield from map(str, (len(form.changed), len(form.skipped)))
    yield f"{len(form.only_then)}/{len(form.only_here)}"


def _predicted(
    here: LoweredForms, form: FixedForm, usual: LoweredModel, estimates: Estimates
) -> Iterator[str]:
    """Sums of estimates of the fixed form, of the passes' own and of the one that tuning begins with, in µs."""
    own = form_of(usual)
    kinds = kinds_in_order(usual, own, estimates.headroom)
    fixed = form_of(here.lowered(form.decisions))
    forms = Forms(lambda changed: here.lowered(Decisions(changed)), own)
    begun = beginning(forms, estimates.seconds, kinds).form
    total = partial(_microseconds, estimates)
    sums = [total(each) for each in (fixed, own, begun)]
    yield from (f"{each:.0f}" for each in sums)
    yield f"{sums[0] / sums[2]:.3f}"


def _microseconds(estimates: Estimates, form: Form) -> float:
    return 1e6 * sum(n * estimates.seconds(problem) for problem, n in form.problems.items())


if __name__ == "__main__":
    sys.exit(main())
