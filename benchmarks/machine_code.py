"""Compare the machine code of two plans, operator by operator.

    python benchmarks/machine_code.py BEFORE.plan AFTER.plan [BEFORE.plan AFTER.plan ...]

For plans of one model that two versions of wpk wrote, of whatever schemas: names and digests may differ, so
kernels are compared by the instructions that their launches execute. Where they differ, registers, shared
memory and spills are shown. Exits with 1 where an operator has another kernel.
"""

from __future__ import annotations

import argparse
import json
import sys
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wpk.build.cubin import read_cubin


@dataclass(frozen=True)
class Launch:
    """A launch of an operator.

    Attributes:
        code: The instructions of its kernel.
        shape: Blocks, threads and dynamic shared memory.
        resources: What the compiler says of the kernel.
    """

    code: bytes
    shape: tuple[str, ...]
    resources: dict[str, int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line a pair; 1 where anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("plans", nargs="+", type=Path, metavar="PLAN")
    plans = parser.parse_args(arguments).plans
    if len(plans) % 2:
        parser.error("plans come in pairs: BEFORE AFTER")
    different = 0
    for before, after in zip(plans[::2], plans[1::2], strict=True):
        found = list(differences(before, after))
        different += bool(found)
        count = len(_plan(before)["steps"])
        print(f"{after.name}: {count - len(found)} of {count} operators have the same machine code")
        for line in found:
            print(f"  {line}")
    return int(different > 0)


def differences(before: Path, after: Path) -> Iterator[str]:
    """What differs, a line an operator."""
    first, second = _operators(before), _operators(after)
    for name in sorted(first.keys() ^ second.keys()):
        yield f"{name}: only in {before if name in first else after}"
    for name in first.keys() & second.keys():
        one, other = first[name], second[name]
        if [(each.code, each.shape) for each in one] != [(e.code, e.shape) for e in other]:
            yield f"{name}: {_words(one)}; now {_words(other)}"


def _words(launches: Sequence[Launch]) -> str:
    return ", ".join(
        f"{len(each.code) // 16} instructions, {' '.join(each.shape)}, {each.resources}"
        for each in launches
    )


def _plan(path: Path) -> Any:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("plan.json"))


def _operators(path: Path) -> dict[str, list[Launch]]:
    plan = _plan(path)
    with zipfile.ZipFile(path) as archive:
        cubins = {name: archive.read(f"kernels/{name}.cubin") for name in plan["kernels"]}
    code = {name: read_cubin(data) for name, data in cubins.items()}
    return {
        step["operator"]["name"]: [
            Launch(
                code[each["kernel"]][each["entry"]].code,
                tuple(str(each[part]) for part in ("grid", "block", "shared_bytes", "attributes")),
                plan["kernels"][each["kernel"]]["resources"],
            )
            for each in step["launches"]
        ]
        for step in plan["steps"]
    }


if __name__ == "__main__":
    sys.exit(main())
