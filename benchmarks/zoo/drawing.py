"""What a commit draws: networks of timm's list, and those of the zoo that are measured in other ways, too.

The first eight hexadecimal digits of the commit that is measured are the seed, so that nobody chooses. It is
drawn once (``benchmarks/draw_zoo.py``); the file stays beside this one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

DRAWN = Path(__file__).with_name("drawn.json")

COUNT = 12
"""Of the drawn, and of the chosen."""

MOST_PARAMETERS = 100_000_000


@dataclass(frozen=True)
class Draw:
    """What was drawn.

    Attributes:
        commit: That it was drawn by.
        chosen: Families of the zoo.
        drawn: Networks of timm.
        skipped: Networks of timm that the seed drew before, and why they are not among the drawn.
        versions: Of the packages that the list comes from, and that exported the drawn.
    """

    commit: str
    chosen: tuple[str, ...]
    drawn: tuple[str, ...]
    skipped: dict[str, str]
    versions: dict[str, str]


def seed_of(commit: str) -> int:
    """The first eight hexadecimal digits of a commit.

    Raises:
        ValueError: It does not begin with so many.
    """
    return int(commit[:8].ljust(8, "?"), 16)


def chosen(commit: str, families: Sequence[str]) -> tuple[str, ...]:
    """Which families of the zoo a commit chooses."""
    return tuple(sorted(random.Random(seed_of(commit)).sample(sorted(families), COUNT)))


def drawn(
    commit: str, families: Mapping[str, Sequence[str]], why_not: Callable[[str], str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Draw networks, the family first, so that large families count no more than small ones.

    Args:
        commit: Draws.
        families: Names of networks by family; of each family at most one is drawn.
        why_not: Why a network is skipped; empty where it is not. The next of its family follows it.

    Returns:
        The names, and what was skipped with the reason.
    """
    generator = random.Random(seed_of(commit))
    order = generator.sample(sorted(families), len(families))
    found: list[str] = []
    skipped: dict[str, str] = {}
    for family in order:
        if len(found) == COUNT:
            break
        names = generator.sample(sorted(families[family]), len(families[family]))
        for name in names:
            reason = why_not(name)
            if not reason:
                found.append(name)
                break
            skipped[name] = reason
    return tuple(found), skipped


def kept(path: Path = DRAWN) -> Draw | None:
    """What was drawn; None where nothing was yet."""
    if not path.is_file():
        return None
    data = json.loads(path.read_text())
    return Draw(**data | {"chosen": tuple(data["chosen"]), "drawn": tuple(data["drawn"])})


def keep(draw: Draw, path: Path = DRAWN) -> None:
    """Write what was drawn.

    Raises:
        FileExistsError: Something was drawn before.
    """
    with path.open("x") as file:
        file.write(json.dumps(asdict(draw), indent=1, sort_keys=True) + "\n")
