"""Partitions that were fixed before forms of a model competed, as forms of today: `fixed_partition.json` beside this file.

Before the commit that the file names, passes joined what they could by rule, and nothing measured whether that is faster. For
each network and batch the file holds the form whose partition is nearest to the one of that commit, and in what operators it
differs from it. Passes that are newer than the commit are left out where that brings a form nearer. ``benchmarks/fix_partition.py``
writes the file.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from zoo.lowered_forms import Decisions

PARTITIONS = Path(__file__).with_name("fixed_partition.json")


@dataclass(frozen=True)
class FixedForm:
    """The form of a network whose partition is that of the commit.

    Attributes:
        network: A family of the zoo.
        batch: Inputs at once.
        exporter: What wrote the network's file, with its version: others may write other nodes, whose keys are others.
        changed: Keys of the sites that are decided otherwise than passes do today.
        skipped: Names of the passes that are left out, ascending: newer ones than the commit's.
        then: Operators that the commit made.
        operators: Operators of this form.
        today: Operators that passes make by today's rules.
        partition: Digest of this form's partition (`zoo.operators.digest`): passes that make another one are newer than the file.
        only_then: Operators that only the commit made, in words.
        only_here: Operators that only this form has.
    """

    network: str
    batch: int
    exporter: str
    changed: tuple[str, ...]
    skipped: tuple[str, ...]
    then: int
    operators: int
    today: int
    partition: str = ""
    only_then: tuple[str, ...] = ()
    only_here: tuple[str, ...] = ()

    @property
    def decisions(self) -> Decisions:
        """What makes it."""
        return Decisions(frozenset(self.changed), frozenset(self.skipped))


@dataclass(frozen=True)
class FixedPartitions:
    """What the file says.

    Attributes:
        commit: The last one at which partitions were fixed.
        forms: Of each network and batch.
        graphs: Of small graphs (`zoo.small_graphs`), by which tests notice that passes are newer than the file.
    """

    commit: str
    forms: tuple[FixedForm, ...]
    graphs: tuple[FixedForm, ...] = ()


def fixed_partitions(path: Path = PARTITIONS) -> FixedPartitions:
    """Read the file.

    Raises:
        ValueError: It says what this cannot read.
    """
    data = json.loads(path.read_text(encoding="utf-8"))
    lists = (tuple(map(_form, data[name])) for name in ("forms", "graphs"))
    return FixedPartitions(data["commit"], *lists)


def keep(partitions: FixedPartitions, path: Path = PARTITIONS) -> None:
    """Write the file."""
    text = json.dumps(asdict(partitions), indent=1, sort_keys=True, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _form(data: dict[str, Any]) -> FixedForm:
    lists = ("changed", "skipped", "only_then", "only_here")
    return FixedForm(**data | {name: tuple(data[name]) for name in lists})
