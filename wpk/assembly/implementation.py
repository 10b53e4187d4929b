"""A candidate made ready to be a step of a plan: its kernels, and how it reads the constant operand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from numpy.typing import NDArray

from wpk.candidate import Candidate, Kind, Maker
from wpk.kernel_source import KernelSource
from wpk.launch import Launch
from wpk.libraries import find_library, lay_out
from wpk.plan import CONTROL
from wpk.problems import Problem
from wpk.runtime import RUNTIME, runtime_version
from wpk.schedules import pack
from wpk.search.models import Finalist

Pack = Callable[[NDArray[Any]], NDArray[Any]]


@dataclass(frozen=True)
class Implementation:
    """What a step of a plan executes for a problem.

    Attributes:
        candidate: What it implements.
        sources: Its kernels; none of a library's.
        launches: How they are launched, in sequence; likewise.
        packing: How the constant operand is stored; None where it is as it is, or there is none.
        pack: Brings the constant operand into that form.
        workspace_bytes: Scratch memory that a library asks for; launches say themselves.
    """

    candidate: Candidate
    sources: tuple[KernelSource, ...]
    launches: tuple[Launch, ...]
    packing: str | None
    pack: Pack
    workspace_bytes: int = 0


def generated(problem: Problem, finalist: Finalist) -> Implementation:
    """A schedule's kernels."""
    packing = finalist.template.packing(problem, finalist.prediction.schedule)
    return Implementation(
        candidate=finalist.candidate,
        sources=finalist.sources,
        launches=finalist.launches,
        packing=packing,
        pack=lambda array: pack(str(packing), array, problem),
    )


def by_runtime() -> Implementation:
    """What ONNX Runtime executes."""
    candidate = Candidate(Maker(RUNTIME, runtime_version(), Kind.RUNTIME), ())
    return Implementation(candidate, (), (), None, lambda array: array)


def by_bodies() -> Implementation:
    """What the host drives: engines of bodies."""
    return Implementation(CONTROL, (), (), None, lambda array: array)


def by_library(problem: Problem, candidate: Candidate, workspace_bytes: int) -> Implementation:
    """A library's implementation, with the scratch memory that it asked for when it was made ready."""
    library = find_library(candidate.maker.name)
    layout = library.constant_layout(problem, candidate.configuration)
    lay = partial(lay_out, str(layout))
    return Implementation(candidate, (), (), layout, lay, workspace_bytes)
