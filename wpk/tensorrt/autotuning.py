"""Candidates that TensorRT timed, as a build with an editable timing cache logs them.

There is no call that lists them: the verbose log holds a table for each operator that was tuned
(``BuilderFlag.EDITABLE_TIMING_CACHE``, from 10.8 on).
"""

import re
from dataclasses import dataclass

_MILLISECOND = 1e-3

_OPERATOR = re.compile(r"Autotuning op (?P<name>.*)\(key: (?P<key>0x[0-9a-fA-F]+)\)")
_NUMBER = r"(?:\d+\.?\d*(?:[eE][-+]?\d+)?)"
_TACTIC = re.compile(
    rf"(?:^|\s)\d+, (?P<ms>{_NUMBER}), {_NUMBER}, [^,]+, (?P<kernel>.*), (?P<hash>0x[0-9a-fA-F]+),"
)
_SELECTED = re.compile(r"The selected tactic is [^:]*:\s*(?P<hash>0x[0-9a-fA-F]+)")


@dataclass(frozen=True)
class TimedTactic:
    """An implementation of TensorRT's, timed while it built."""

    kernel: str
    digest: str
    seconds: float


@dataclass(frozen=True)
class TunedOperator:
    """An operator that TensorRT tuned.

    Attributes:
        name: Of the operator in TensorRT's network.
        key: Of its entry in the timing cache.
        tactics: What was timed, in the log's order.
        selected: Digest of the one it took; None where the log ends before it says.
    """

    name: str
    key: str
    tactics: tuple[TimedTactic, ...]
    selected: str | None


def parse_autotuning(log: str) -> tuple[TunedOperator, ...]:
    """The operators that a verbose build log says were tuned; none where it has no such tables."""
    found: list[TunedOperator] = []
    for line in log.splitlines():
        if operator := _OPERATOR.search(line):
            found.append(TunedOperator(operator["name"].strip(), operator["key"], (), None))
        elif not found or found[-1].selected is not None:
            continue
        elif selected := _SELECTED.search(line):
            last = found[-1]
            found[-1] = TunedOperator(last.name, last.key, last.tactics, selected["hash"])
        elif tactic := _TACTIC.search(line):
            timed = TimedTactic(
                tactic["kernel"], tactic["hash"], float(tactic["ms"]) * _MILLISECOND
            )
            last = found[-1]
            found[-1] = TunedOperator(last.name, last.key, (*last.tactics, timed), None)
    return tuple(found)
