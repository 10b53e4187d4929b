"""The key of the tuning store decides whether a measurement can be used again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from wpk.candidate import Maker
from wpk.codec import encode
from wpk.problems import Problem


@dataclass(frozen=True)
class Setup:
    """A setup is where and with what kernels are measured.

    Attributes:
        target: Name of the target, e.g. ``h200``.
        arch: What the compiler builds for, e.g. ``sm_90a``.
        compiler: Version of the compiler, patch release included.
        driver: Version of the GPU's driver.
    """

    target: str
    arch: str
    compiler: str
    driver: str


@dataclass(frozen=True)
class StoreKey:
    """Trials under equal keys may stand for each other.

    Attributes:
        problem: What is computed.
        maker: The schedule template or the library.
        setup: Where and with what it is measured.
    """

    problem: Problem
    maker: Maker
    setup: Setup

    @cached_property
    def problem_json(self) -> str:
        """The problem as canonical JSON."""
        return canonical_json(encode(self.problem, Problem))

    @cached_property
    def digest(self) -> str:
        """The problem's digest, as `json_digest` makes it."""
        return json_digest(self.problem_json)


def problem_digest(problem: Problem) -> str:
    """Return the SHA-256 of the problem's canonical JSON, as 64 hexadecimal digits."""
    return json_digest(canonical_json(encode(problem, Problem)))


def canonical_json(data: object) -> str:
    """Return the one JSON text of plain data: names sorted, no spaces, ASCII.

    Raises:
        ValueError: The data holds NaN or an infinity as a number.
    """
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def json_digest(text: str) -> str:
    """Return the SHA-256 of a canonical JSON text, as 64 hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()
