"""What is expected of each backend test: a text file that is reviewed like code."""

import fcntl
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from backend_cases import VERSION, Listed
from backend_outcomes import ALONE, Kind

PATH = Path(__file__).with_name("expectations.txt")

FLOAT32_PATH = Path(__file__).with_name("float32_inference.txt")
"""The names of `backend_float32`'s group, so that its share is known without making all tests."""

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


def read_float32() -> frozenset[str]:
    """The names of the tests of inference in float32."""
    lines = FLOAT32_PATH.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def render(expectations: Mapping[tuple[str, str], str], float32: Collection[str]) -> str:
    """The file's text: its counts, then the tests by group and name.

    Args:
        expectations: Outcome by group and name.
        float32: The names of the tests of inference in float32.
    """
    lines = [f"# {line}" for line in _HEADER.splitlines()]
    counts = Counter(_counted(outcome) for outcome in expectations.values())
    lines += ["#", f"# {len(expectations)} tests:"]
    lines += [f"# {count:6} {words}" for words, count in sorted(counts.items())]
    lines += ["#", *_share(expectations, float32)]
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


def rename(listed: Mapping[str, Listed]) -> None:
    """Write which tests there are; those that are new are expected to be run.

    Args:
        listed: Each test by its name.
    """
    with _locked() as file:
        names = sorted(name for name, each in listed.items() if each.is_float32)
        lines = [
            "# Backend tests of inference in float32, as backend_float32.py chooses them.",
            *names,
        ]
        FLOAT32_PATH.write_text("\n".join(lines) + "\n", encoding="utf-8")
        known = {name: outcome for (_, name), outcome in read().items()}
        fresh = {(each.group, name): known.get(name, UNKNOWN) for name, each in listed.items()}
        _rewrite(file, fresh)


@contextmanager
def _locked() -> Iterator[TextIO]:
    """The file, which no other process writes meanwhile."""
    with PATH.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _rewrite(file: TextIO, expectations: Expectations) -> None:
    file.write(render(expectations, read_float32()))
    file.truncate()


def _share(expectations: Mapping[tuple[str, str], str], float32: Collection[str]) -> list[str]:
    """How many of the tests of inference in float32 pass by kernels alone."""
    outcomes = [outcome for (_, name), outcome in expectations.items() if name in float32]
    kernels = sum(outcome.partition(":")[0] == Kind.PASSED for outcome in outcomes)
    share = f"{100 * kernels / max(len(outcomes), 1):.1f} %"
    return [
        f"# Of {len(outcomes)} tests of inference in float32 (backend_float32.py), {kernels} pass by kernels",
        f"# alone: {share}.",
    ]


def _counted(outcome: str) -> str:
    """A refusal without its reason; everything else as it is."""
    if not outcome.startswith("refused"):
        return outcome
    return "refused" + (ALONE if outcome.endswith(ALONE) else "")
