"""Which checks find which planted pass, each check alone.

    scripts/planted_passes [PART OF A NAME]

The columns are in the order in which `wpk.optimize` asks; it stops at the first that finds something.
Networks are left out unless named: each takes minutes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.faults.graph_passes.broken_pass import BrokenPass, planted
from support.faults.graph_passes.kit import KIT
from support.plans.quick_search import compile_one
from wpk.assembly.assemble import Setting, assemble
from wpk.assembly.origin import provenance
from wpk.build import CompilePool
from wpk.checks.pass_proof import prove_passes
from wpk.checks.scope import Scope
from wpk.checks.verification import verify
from wpk.emulator import EmulatorProcess
from wpk.lowering.model import lower_model
from wpk.progress import silent
from wpk.schedules.registry import TEMPLATES
from wpk.search.loop.choices import static_choices
from wpk.search.models.model_search import search_model
from wpk.targets.registry import find_target

COLUMNS = ("graph passes", "operators alone", "whole engine")


def found_by(fault: BrokenPass, folder: Path) -> tuple[bool, bool, bool]:
    """Whether each of the checks finds the fault, asked whatever the others say."""
    path, target = fault.write_model(folder), find_target("h200")
    with planted(fault), CompilePool(target.arch) as pool, EmulatorProcess() as device:
        lowered = lower_model(path, {}, fault.precision)
        proof = prove_passes(lowered, Scope(), silent)
        problems = [operator.problem for operator in lowered.program.operators]
        choices = static_choices(search_model(problems, TEMPLATES, target, pool.compile, silent))
        setting = Setting(target, fault.precision, provenance(path, lowered, {}, ()))
        kernels = choices.implementations, choices.kernels
        outcome = verify(assemble(lowered.program, *kernels, setting), proof, device, silent)
    return (
        any(check.failed for check in outcome.passes),
        any(each.check.failed for each in outcome.operators),
        any(check.failed for check in outcome.whole),
    )


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 where no check finds a fault."""
    wanted = " ".join(arguments)
    faults = [f for f in KIT if (wanted in f"{f.breaks}: {f.name}" if wanted else not f.is_network)]
    counts, missed = [0, 0, 0], 0
    print(f"| pass | fault | {' | '.join(COLUMNS)} |\n|---|---|{'---|' * len(COLUMNS)}")
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        compile_one(patch)
        for fault in faults:
            found = found_by(fault, Path(folder))
            counts = [count + each for count, each in zip(counts, found, strict=True)]
            missed += not any(found)
            marks = " | ".join("found" if each else "" for each in found)
            print(f"| {fault.breaks} | {fault.name} | {marks} |", flush=True)
    each = ", ".join(f"{name} {count}" for name, count in zip(COLUMNS, counts, strict=True))
    print(f"\n{len(faults)} faults; found by each check alone: {each}; by none: {missed}")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
