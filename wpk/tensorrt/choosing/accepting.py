"""The winners together in one engine: kept only if the whole of it is faster, bisected otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from wpk.nvinfer import TensorRTError
from wpk.tensorrt.choosing.comparing import Subject
from wpk.tensorrt.choosing.measuring import Builder, Duel, Effort, Engine, Profiler, duel
from wpk.tensorrt.choosing.result import Rebuild

Part = frozenset[str]
"""Operators that are replaced together: those of one group."""


@dataclass(frozen=True)
class Accepted(Generic[Engine]):
    """The engine that was kept.

    Attributes:
        engine: The fastest as a whole.
        parts: The groups' operators that are plugins in it, beside the required ones.
        rebuilds: What was tried.
    """

    engine: Engine
    parts: frozenset[Part]
    rebuilds: tuple[Rebuild, ...]


def accept(
    builder: Builder[Engine],
    profiler: Profiler[Engine],
    native: Subject[Engine],
    winners: Sequence[Part],
    effort: Effort,
) -> Accepted[Engine]:
    """Rebuild with all winners; while that is not faster than the best engine, with halves of them.

    Args:
        builder: Builds.
        profiler: Measures.
        native: The engine without winners.
        winners: Largest gain first.
        effort: At most so many rebuilds.
    """
    best, kept = native.engine, frozenset[Part]()
    failed: set[frozenset[Part]] = set()
    rebuilds: list[Rebuild] = []
    waiting = [list(winners)] if winners else []
    while waiting and len(rebuilds) < effort.rebuilds:
        parts = waiting.pop(0)
        together = kept | frozenset(parts)
        if together not in failed:
            replaced = native.replaced.union(*together)
            names = tuple(sorted(replaced))
            try:
                engine = builder.build(replaced)
            except TensorRTError as error:
                rebuilds.append(Rebuild(names, None, None, None, False, f"not built: {error.what}"))
            else:
                found = duel(profiler, engine, best, effort.runs)
                rebuilds.append(_judged(names, found))
                if found.is_won:
                    best, kept = engine, together
                    continue
            failed.add(together)
        if len(parts) > 1:
            middle = (len(parts) + 1) // 2
            waiting[:0] = [parts[:middle], parts[middle:]]
    return Accepted(best, kept, tuple(rebuilds))


def _judged(names: tuple[str, ...], found: Duel) -> Rebuild:
    why = _why_whole(found)
    return Rebuild(names, found.seconds, found.rival, found.noise, found.is_won, why)


def _why_whole(found: Duel) -> str:
    if found.is_won:
        return "the whole engine is faster than the best before by more than noise"
    if found.seconds < found.rival:
        return "the whole engine is faster than the best before, but within noise"
    return "the whole engine is not faster than the best before"
