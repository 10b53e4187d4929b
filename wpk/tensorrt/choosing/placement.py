"""Where the network's operators are in an engine."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from wpk.tensorrt.choosing.inspector import EngineInformation, EngineLayer
from wpk.tensorrt.choosing.naming import (
    inserted_for,
    is_foreign,
    nodes_in,
    nodes_of,
    region_of,
)
from wpk.tensorrt.choosing.network import Network
from wpk.tensorrt.choosing.profile import Profile


class Role(Enum):
    """What a layer of an engine is there for."""

    WORK = "work"
    INSERTED = "inserted"
    HIDDEN = "hidden"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class PlacedLayer:
    """A layer and the units (operators, bare nodes) it is there for.

    Attributes:
        layer: Of the engine.
        role: Work is a unit's own; inserted is a copy between layers; hidden is what TensorRT's
            compiler made of nodes it does not tell one by one; unknown names nothing of the network.
        units: Of work: what it computes. Of an inserted layer: what it was made for, by its name.
            Of a hidden one: what it tells all the same.
    """

    layer: EngineLayer
    role: Role
    units: frozenset[str]


def place(engine: EngineInformation, network: Network) -> tuple[PlacedLayer, ...]:
    """Find the units of every layer of an engine, in its order."""
    placed = [_place(layer, network) for layer in engine.layers]
    regions = [region_of(each.layer) for each in placed]
    opaque = {
        region
        for each, region in zip(placed, regions, strict=True)
        if region and each.role is not Role.WORK
    }
    return tuple(
        PlacedLayer(each.layer, Role.HIDDEN, each.units) if region in opaque else each
        for each, region in zip(placed, regions, strict=True)
    )


def hidden_units(placed: Iterable[PlacedLayer], network: Network) -> frozenset[str]:
    """Units that no layer owns up to, or that a region of TensorRT's compiler holds."""
    shown = frozenset[str]().union(*(each.units for each in placed if each.role is Role.WORK))
    told = frozenset[str]().union(*(each.units for each in placed if each.role is Role.HIDDEN))
    return (frozenset(network.units.values()) - shown) | told


def seconds_of(placed: Sequence[PlacedLayer], profile: Profile) -> tuple[float | None, ...]:
    """What each layer takes; None where the profile does not have it.

    Layers of equal names are told apart by their order. A layer that moves nothing is not
    reported: it takes no time.
    """
    reported: dict[str, list[float]] = defaultdict(list)
    for time in profile.times:
        reported[time.name].append(time.seconds)
    seen: Counter[str] = Counter()
    found: list[float | None] = []
    for each in placed:
        times = reported.get(each.layer.name, [])
        index = seen[each.layer.name]
        seen[each.layer.name] += 1
        silent = 0.0 if each.layer.kind == "NoOp" else None
        found.append(times[index] if index < len(times) else silent)
    return tuple(found)


def _place(layer: EngineLayer, network: Network) -> PlacedLayer:
    copied_for = inserted_for(layer)
    if copied_for:
        return PlacedLayer(
            layer, Role.INSERTED, _units(nodes_in(copied_for, network.names), network)
        )
    units = _units(nodes_of(layer, network.names), network)
    if is_foreign(layer):
        return PlacedLayer(layer, Role.HIDDEN, units)
    if units:
        return PlacedLayer(layer, Role.WORK, units)
    return PlacedLayer(layer, Role.UNKNOWN if copied_for is None else Role.INSERTED, units)


def _units(names: Iterable[str], network: Network) -> frozenset[str]:
    return frozenset(network.units[name] for name in names)
