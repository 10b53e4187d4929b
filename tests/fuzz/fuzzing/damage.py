"""Damage to JSON: numbers, texts, lists and keys, at places drawn at random."""

import copy
from random import Random
from typing import Any

NUMBERS = (
    0, 1, -1, 2, 3, 7, 8, 16, 255, 4096, 2**16, 2**20, 2**26, 2**31 - 1, 2**31, -(2**31), 2**40, 2**53,
    2**63, -(2**63), 10**400, 0.5, -0.0, 1e300, 1e-300,
)  # fmt: skip
TEXTS = (
    "", "x", "y", "file", "self", "N", "\x1b[31mred\x1b[0m", "\u202egnp", "a" * 5000, "\x00", "../../etc", "%s{0}",
    "<script>alert(1)</script>", "h200", "fp32", "int64", "\ud800",
)  # fmt: skip

Place = tuple[Any, Any]
"""A container, and the key or index of what is changed."""


def damaged(random: Random, data: Any, roots: list[list[Any]] | None = None) -> tuple[Any, str]:
    """A copy with one to three changes, and what they are.

    Args:
        random: Decides.
        data: JSON; not changed.
        roots: Paths below which to change something; anywhere by default.
    """
    made = copy.deepcopy(data)
    words = []
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        root = random.choice(roots) if roots else []
        places = list(_places(_at(made, root), root))
        if not places:
            continue
        container, key, path = random.choice(places)
        words.append(f"{'.'.join(map(str, path))}: {_change(random, container, key)}")
    return made, "; ".join(words)


def _at(data: Any, path: list[Any]) -> Any:
    for key in path:
        data = data[key]
    return data


def _places(data: Any, path: list[Any]) -> Any:
    """Every member of every container below."""
    if isinstance(data, dict):
        entries = list(data.items())
    elif isinstance(data, list):
        entries = list(enumerate(data))
    else:
        return
    for key, value in entries:
        yield data, key, [*path, key]
        yield from _places(value, [*path, key])


def _change(random: Random, container: Any, key: Any) -> str:
    value = container[key]
    kind = random.random()
    if kind < 0.12:
        return _restructure(random, container, key)
    if kind < 0.18:
        new: Any = random.choice([None, True, [], {}, "1", 1, 1.5, [value], {"a": value}])
    elif isinstance(value, bool):
        new = not value
    elif isinstance(value, int | float):
        new = _number(random, value)
    elif isinstance(value, str):
        new = _text(random, value)
    elif isinstance(value, list) and value:
        new = _list(random, value)
    else:
        new = random.choice([None, 0, "x", []])
    container[key] = new
    return f"{str(value)[:60]!r} -> {str(new)[:60]!r}" if not _is_huge(new) else "a huge number"


def _is_huge(value: Any) -> bool:
    return isinstance(value, int) and abs(value) > 10**100


def _number(random: Random, value: float) -> float:
    if random.random() < 0.35:
        return random.choice(NUMBERS)
    near = [value + 1, value - 1, -value, value * 2, value + 8, value - 64, value + 4096]
    if isinstance(value, int):
        near += [value // 2, value ^ 1, value + 2**20, 1 - value]
    return random.choice(near)


def _text(random: Random, value: str) -> str:
    kind = random.random()
    if kind < 0.5 or not value:
        return random.choice(TEXTS)
    at = random.randrange(len(value))
    if kind < 0.75:
        return value[:at] + random.choice("0af:/\\\"'\n\x1b") + value[at + 1 :]
    return random.choice([value + "x", value[:-1], value.upper(), value * 2])


def _list(random: Random, value: list[Any]) -> list[Any]:
    index, made = random.randrange(len(value)), list(value)
    match random.randrange(6):
        case 0:
            del made[index]
        case 1:
            made.insert(index, copy.deepcopy(made[index]))
        case 2:
            made.reverse()
        case 3:
            made = []
        case 4:
            random.shuffle(made)
        case _:
            made = made[: index + 1]
    return made


def _restructure(random: Random, container: Any, key: Any) -> str:
    """Something dropped, renamed, added, or taken from beside."""
    kind = random.randrange(4)
    if kind == 0:
        del container[key]
        return "dropped"
    if isinstance(container, dict):
        if kind == 1:
            container[random.choice(TEXTS)] = container.pop(key)
            return "renamed"
        if kind == 2:
            container[random.choice(TEXTS)] = copy.deepcopy(container[key])
            return "added"
    others = list(container.values()) if isinstance(container, dict) else list(container)
    container[key] = copy.deepcopy(random.choice(others))
    return "replaced by a neighbour"
