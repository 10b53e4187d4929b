"""A simulated TensorRT, written by us: a chain of operators with known times. It proves nothing of the real one."""

import random
from dataclasses import dataclass, field

from wpk.tensorrt import TensorRTError
from wpk.tensorrt.choosing import EngineInformation, LayerTime, Network, Profile
from wpk.tensorrt.choosing.inspector import EngineLayer, LayerTensor

COPY = "Reformatting CopyNode for Input Tensor 0 to "


@dataclass(frozen=True)
class Operator:
    """An operator of the chain.

    Attributes:
        native: Seconds as TensorRT's own layer.
        plugin: Seconds as a plugin.
        fused: TensorRT computes it in one layer with the one after it, where neither is a plugin.
        hidden: In a foreign node, as long as it is no plugin.
        nameless: TensorRT's own layer of it says nothing of its node, even where it computes others, too.
        unbuildable: No engine with its plugin is built.
        drag: Seconds that its plugin costs the whole engine, which no profile shows.
        unprofiled: The profile lacks its plugin.
    """

    native: float
    plugin: float
    fused: bool = False
    hidden: bool = False
    nameless: bool = False
    unbuildable: bool = False
    drag: float = 0.0
    unprofiled: bool = False


@dataclass(frozen=True)
class SimulatedEngine:
    """An engine: its layers and what they take, without noise."""

    information: EngineInformation
    times: tuple[LayerTime, ...]
    seconds: float


@dataclass
class Simulated:
    """Builder and profiler of a chain of operators ``o0 … on``.

    Attributes:
        chain: In the order of the data.
        copy: Seconds of the copy between a plugin and a layer of TensorRT's.
        noise: A measurement is off by up to this share, evenly distributed.
        seed: Of the noise.
    """

    chain: list[Operator]
    copy: float = 0.0
    noise: float = 0.0
    seed: int = 0
    built: list[frozenset[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def network(self, *, required: frozenset[str] = frozenset()) -> Network:
        """The chain, with a plugin for each operator."""
        names = [f"o{i}" for i in range(len(self.chain))]
        return Network(
            {name: frozenset({f"{name}/n"}) for name in names},
            replaceable=frozenset(names),
            required=required,
        )

    def build(self, replaced: frozenset[str]) -> SimulatedEngine:
        """As `wpk.tensorrt.choosing.Builder` says."""
        self.built.append(replaced)
        broken = [n for n in sorted(replaced) if self.chain[int(n[1:])].unbuildable]
        if broken:
            raise TensorRTError(f"simulated: {broken[0]} fails", fix="none")
        layers: list[EngineLayer] = []
        times: list[LayerTime] = []
        before: bool | None = None
        for index, (names, seconds, is_plugin) in enumerate(self._layers(replaced)):
            read = f"t{index}"
            if before is not None and before != is_plugin:
                layers.append(_layer(COPY + names, read, f"{read}copy", "Reformat"))
                times.append(LayerTime(COPY + names, self.copy))
                read += "copy"
            layers.append(_layer(names, read, f"t{index + 1}", "Plugin" if is_plugin else "Conv"))
            if not (is_plugin and self.chain[int(names[1:])].unprofiled):
                times.append(LayerTime(names, seconds))
            before = is_plugin
        drag = sum(self.chain[int(name[1:])].drag for name in replaced)
        whole = sum(time.seconds for time in times) + drag
        return SimulatedEngine(EngineInformation(tuple(layers), ()), tuple(times), whole)

    def information(self, engine: SimulatedEngine) -> EngineInformation:
        """As `wpk.tensorrt.choosing.Profiler` says."""
        return engine.information

    def profile(self, engine: SimulatedEngine) -> Profile:
        """Likewise."""
        return Profile(
            tuple(LayerTime(time.name, self._noisy(time.seconds)) for time in engine.times), 1
        )

    def latency(self, engine: SimulatedEngine) -> float:
        """Likewise."""
        return self._noisy(engine.seconds)

    def _noisy(self, seconds: float) -> float:
        return seconds * (1 + self.noise * self._random.uniform(-1, 1))

    def _layers(self, replaced: frozenset[str]) -> list[tuple[str, float, bool]]:
        """(name, seconds, is plugin) of each layer that works."""
        found: list[tuple[list[int], bool]] = []
        for index, operator in enumerate(self.chain):
            is_plugin = f"o{index}" in replaced
            last = self.chain[found[-1][0][-1]] if found else operator
            joined = (last.fused and not operator.hidden) or (last.hidden and operator.hidden)
            if found and not is_plugin and not found[-1][1] and joined:
                found[-1][0].append(index)
            else:
                found.append(([index], is_plugin))
        return [
            (self._name(some, plugin), self._seconds(some, plugin), plugin)
            for some, plugin in found
        ]

    def _name(self, some: list[int], is_plugin: bool) -> str:
        if is_plugin:
            return f"o{some[0]}"
        if self.chain[some[0]].hidden:
            return f"{{ForeignNode[o{some[0]}/n...o{some[-1]}/n]}}"
        named = [f"o{index}/n" for index in some if not self.chain[index].nameless]
        return " + ".join(named) or f"(Unnamed Layer* {some[0]}) [ElementWise]"

    def _seconds(self, some: list[int], is_plugin: bool) -> float:
        return sum(self.chain[i].plugin if is_plugin else self.chain[i].native for i in some)


def _layer(name: str, reads: str, makes: str, kind: str) -> EngineLayer:
    tensors = [(LayerTensor(each, "", "", ()),) for each in (reads, makes)]
    return EngineLayer(name, kind, *tensors)
