"""Which groups of operators become plugins: measured alone with their copies, then as whole engines."""

from collections.abc import Mapping, Sequence

from wpk.nvinfer import TensorRTError
from wpk.tensorrt.choosing.accepting import Accepted, accept
from wpk.tensorrt.choosing.comparing import Comparison, Subject, compare
from wpk.tensorrt.choosing.grouping import united
from wpk.tensorrt.choosing.measuring import Builder, Effort, Engine, Profiler
from wpk.tensorrt.choosing.network import Network
from wpk.tensorrt.choosing.placement import hidden_units, place
from wpk.tensorrt.choosing.result import Choices, GroupChoice

Group = frozenset[str]


def choose(
    builder: Builder[Engine],
    profiler: Profiler[Engine],
    network: Network,
    effort: Effort | None = None,
) -> tuple[Engine, Choices]:
    """Build the engine that is fastest with generated kernels in place of some of TensorRT's layers.

    Args:
        builder: Builds engines of the network.
        profiler: Measures them.
        network: Its operators, and those with plugins.
        effort: How much is built and measured.

    Returns:
        The engine, and what was decided for every operator that has a plugin.

    Raises:
        TensorRTError: The engine without optional plugins is not built, or what it tells cannot be
            read.
    """
    effort = effort or Effort()
    native = _built(builder, profiler, network, network.required)
    hidden = hidden_units(native.placed, network)
    optional = network.replaceable - network.required
    visible = optional - hidden - _beside_hidden(native, network, hidden)
    trials, unbuilt = _trials(builder, profiler, network, visible, effort.trials)
    groups = _groups(network, [native, *trials], visible)
    compared = _compared(profiler, network, native, trials, groups, effort.runs)
    winners = [group for group in groups if group in compared and _wins(compared[group])]
    winners.sort(key=lambda group: -(compared[group].gain or 0.0))
    parts = [group & visible for group in winners]
    accepted = accept(builder, profiler, native, parts, effort)
    records = [
        _record(group, group & visible, compared.get(group), unbuilt, accepted) for group in groups
    ]
    records += [_left_alone(name) for name in optional - visible]
    records += [_required(name) for name in network.required]
    replaced = network.required.union(*accepted.parts)
    return accepted.engine, Choices(
        tuple(sorted(records, key=lambda record: record.operators)),
        accepted.rebuilds,
        tuple(sorted(replaced)),
    )


def _built(
    builder: Builder[Engine],
    profiler: Profiler[Engine],
    network: Network,
    replaced: frozenset[str],
) -> Subject[Engine]:
    engine = builder.build(replaced)
    return Subject(engine, place(profiler.information(engine), network), replaced)


def _beside_hidden(
    native: Subject[Engine], network: Network, hidden: frozenset[str]
) -> frozenset[str]:
    """Units fused with hidden ones: what they take cannot be told apart."""
    groups = united(dict.fromkeys(network.units.values()), [native.placed])
    return frozenset[str]().union(*(group for group in groups if group & hidden))


def _trials(
    builder: Builder[Engine],
    profiler: Profiler[Engine],
    network: Network,
    operators: frozenset[str],
    limit: int,
) -> tuple[list[Subject[Engine]], Mapping[str, str]]:
    """Engines that hold each operator as a plugin, in one if that is built, else in several.

    Returns:
        The engines, and for each operator that is in none of them, why.
    """
    found: list[Subject[Engine]] = []
    unbuilt: dict[str, str] = {}
    waiting = [sorted(operators)] if operators else []
    built = 0
    while waiting:
        part = waiting.pop(0)
        if built == limit:
            unbuilt.update(dict.fromkeys(part, f"{limit} engines with plugins were tried before"))
            continue
        built += 1
        try:
            found.append(_built(builder, profiler, network, network.required | frozenset(part)))
        except TensorRTError as error:
            if len(part) == 1:
                unbuilt[part[0]] = f"TensorRT does not build it as a plugin: {error.what}"
            else:
                middle = len(part) // 2
                waiting += [part[:middle], part[middle:]]
    return found, unbuilt


def _compared(
    profiler: Profiler[Engine],
    network: Network,
    native: Subject[Engine],
    trials: Sequence[Subject[Engine]],
    groups: Sequence[Group],
    runs: int,
) -> dict[Group, Comparison]:
    """Each group in the first engine that holds all its plugins and shows its layers."""
    found: dict[Group, Comparison] = {}
    for trial in trials:
        hidden = hidden_units(trial.placed, network)
        shown = [
            group
            for group in groups
            if group & network.replaceable - network.required <= trial.replaced
            and not group & hidden
            and group not in found
        ]
        if shown:
            found.update(zip(shown, compare(profiler, native, trial, shown, runs), strict=True))
    return found


def _groups(
    network: Network, subjects: Sequence[Subject[Engine]], visible: frozenset[str]
) -> list[Group]:
    units = dict.fromkeys(network.units.values())
    groups = united(units, [subject.placed for subject in subjects])
    return [group for group in groups if group & visible]


def _wins(compared: Comparison) -> bool:
    return compared.gain is not None and compared.gain > compared.noise


def _why_not_compared(operators: frozenset[str], unbuilt: Mapping[str, str]) -> str:
    known = [unbuilt[name] for name in sorted(operators) if name in unbuilt]
    return known[0] if known else "no engine showed all of the group's plugins"


def _record(
    group: Group,
    operators: frozenset[str],
    compared: Comparison | None,
    unbuilt: Mapping[str, str],
    accepted: Accepted[Engine],
) -> GroupChoice:
    is_plugin = operators in accepted.parts
    native = compared.native if compared else None
    plugin = compared.plugin if compared else None
    return GroupChoice(
        operators=tuple(sorted(operators)),
        beside=tuple(sorted(group - operators)),
        native_seconds=native.seconds if native else None,
        plugin_seconds=plugin.work if plugin else None,
        reformat_seconds=plugin.copies if plugin else None,
        noise_seconds=compared.noise if compared else None,
        chosen="plugin" if is_plugin else "native",
        why=_why(compared, is_plugin) if compared else _why_not_compared(operators, unbuilt),
    )


def _why(compared: Comparison, is_plugin: bool) -> str:
    if compared.gain is None:
        return "a profile lacks one of its layers"
    if is_plugin:
        return "faster by more than noise, alone and in the whole engine"
    if _wins(compared):
        return "faster alone, but no whole engine with it was faster by more than noise"
    if compared.gain > 0:
        return "faster, but within noise"
    return "not faster, copies included"


def _left_alone(name: str) -> GroupChoice:
    why = "hidden: no layer of the native engine tells what it takes"
    return GroupChoice((name,), (), None, None, None, None, "native", why)


def _required(name: str) -> GroupChoice:
    why = "TensorRT has no implementation"
    return GroupChoice((name,), (), None, None, None, None, "plugin", why)
