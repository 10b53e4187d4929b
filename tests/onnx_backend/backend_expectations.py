"""What is expected of each backend test: a text file that is reviewed like code."""

import fcntl
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from backend_cases import VERSION
from backend_outcomes import ALONE

PATH = Path(__file__).with_name("expectations.txt")

UNKNOWN = "not run yet"
"""Of a test that came with a new onnx."""

_HEADER = f"""\
What becomes of each backend test of onnx {VERSION}. A test passes as it is, or in a form that exporters
write (backend_forms.py), which is named: by kernels alone, or by fallback. "as onnxruntime" is by fallback,
and off as ONNX Runtime by itself is. Written by:
    scripts/test -m backend --update-backend tests/onnx_backend
"""

Expectations = dict[tuple[str, str], str]
"""Outcome by group and name."""


def read() -> Expectations:
    """The file, parsed."""
    found: Expectations = {}
    group = ""
    for line in PATH.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            group = line.strip("[]")
        elif line and not line.startswith("#"):
            name, _, outcome = line.partition(": ")
            found[group, name] = outcome
    return found


def render(expectations: Mapping[tuple[str, str], str]) -> str:
    """The file's text: its counts, then the tests by group and name."""
    lines = [f"# {line}" for line in _HEADER.splitlines()]
    counts = Counter(_counted(outcome) for outcome in expectations.values())
    lines += ["#", f"# {len(expectations)} tests:"]
    lines += [f"# {count:6} {words}" for words, count in sorted(counts.items())]
    previous = ""
    for group, name in sorted(expectations):
        if group != previous:
            lines += ["", f"[{group}]"]
            previous = group
        lines.append(f"{name}: {expectations[group, name]}")
    return "\n".join(lines) + "\n"


def update(group: str, name: str, outcome: str) -> None:
    """Write what a test gave, whatever other processes write at the same time."""
    with _locked() as file:
        _rewrite(file, {**read(), (group, name): outcome})


def rename(groups: Mapping[str, str]) -> None:
    """Write which tests there are; those that are new are expected to be run.

    Args:
        groups: The group of each test by its name.
    """
    with _locked() as file:
        known = {name: outcome for (_, name), outcome in read().items()}
        fresh = {(group, name): known.get(name, UNKNOWN) for name, group in groups.items()}
        _rewrite(file, fresh)


@contextmanager
def _locked() -> Iterator[TextIO]:
    """The file, which no other process writes meanwhile."""
    with PATH.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _rewrite(file: TextIO, expectations: Expectations) -> None:
    file.write(render(expectations))
    file.truncate()


def _counted(outcome: str) -> str:
    """A refusal without its reason; everything else as it is."""
    if not outcome.startswith("refused"):
        return outcome
    return "refused" + (ALONE if outcome.endswith(ALONE) else "")
