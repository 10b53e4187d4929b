"""Operators are selected by patterns of their names, as ``--ops`` does."""

import logging
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from wpk.errors import EngineError
from wpk.lowering.program import Operator
from wpk.problems import Fallback, Problem

_SHOWN = 40
_log = logging.getLogger(__name__)


def selected_problems(operators: Sequence[Operator], patterns: Sequence[str]) -> set[Problem]:
    """Return the problems of the operators whose names match any pattern, of all operators where there is none.

    Equal problems share one result: an operator that no pattern names gains with one that is named.

    Args:
        operators: Of the program; those that ONNX Runtime executes are never among them.
        patterns: As a shell's for file names: ``conv_*``, ``gemm_[12]?``; case counts.

    Raises:
        EngineError: A pattern matches no operator; lists their names.
    """
    operators = [each for each in operators if not isinstance(each.problem, Fallback)]
    if not patterns:
        return {operator.problem for operator in operators}
    found: set[Problem] = set()
    for pattern in patterns:
        matching = {o.problem for o in operators if fnmatchcase(o.name, pattern)}
        if not matching:
            raise EngineError(
                f"no operator matches {pattern!r}; there are {_listed(o.name for o in operators)}",
                fix="give --ops names or patterns of these, e.g. --ops 'conv_*'",
            )
        found |= matching
    return found


def matching(operators: Sequence[Operator], patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the patterns that name any of these operators; those of one plan of several."""
    names = [each.name for each in operators if not isinstance(each.problem, Fallback)]
    return tuple(p for p in patterns if any(fnmatchcase(name, p) for name in names))


def require_measuring(measured: bool, patterns: Sequence[str], resume: str | None) -> None:
    """Refuse to resume a run where nothing is measured, and warn of operators that are named to be.

    Raises:
        EngineError: A run is resumed, and the models alone will choose.
    """
    why = "nothing is measured: --search static was chosen, or the target's GPU is not here"
    if measured:
        return
    if resume:
        raise EngineError(
            f"--resume is about measuring, and {why}",
            fix="run it on a machine with that GPU and --search auto, or leave --resume out",
        )
    if patterns:
        _log.warning("--ops names what to measure, and %s; the models choose for all", why)


def _listed(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else ""
    return ", ".join(distinct[:_SHOWN]) + more
