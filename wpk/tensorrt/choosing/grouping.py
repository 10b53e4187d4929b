"""Groups of operators that engines never mix, so that their times can be compared.

TensorRT fuses across the operators that wpk made, and differently where a plugin stands between. A
group is the smallest set of units of which no layer, in any of the engines, computes only a part.
"""

from collections.abc import Iterable, Sequence

from wpk.tensorrt.choosing.placement import PlacedLayer, Role


def united(units: Iterable[str], engines: Iterable[Sequence[PlacedLayer]]) -> list[frozenset[str]]:
    """The groups, each as its units, in the order of their first names.

    Args:
        units: All that there are.
        engines: The placed layers of the engines to compare.
    """
    parent = {unit: unit for unit in units}

    def root(unit: str) -> str:
        while parent[unit] != unit:
            parent[unit] = parent[parent[unit]]
            unit = parent[unit]
        return unit

    for engine in engines:
        for each in engine:
            if each.role is Role.WORK:
                first, *others = sorted(each.units)
                for other in others:
                    parent[root(other)] = root(first)
    groups: dict[str, set[str]] = {}
    for unit in parent:
        groups.setdefault(root(unit), set()).add(unit)
    return sorted((frozenset(group) for group in groups.values()), key=sorted)
