"""Problems by name as JSON: what a machine without a GPU prepares and one with a GPU records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wpk.codec import FieldError, decode, encode
from wpk.problems import Problem

_ANY_PROBLEM: Any = Problem
"""An abstract class, of which any kind may stand there."""


def described(problem: Problem) -> Any:
    """Return a problem as plain JSON data."""
    return encode(problem, Problem)


def read_described(data: Any, name: str) -> Problem:
    """Return the problem that plain JSON data describes.

    Args:
        data: As `described` returns it.
        name: Of the problem, for errors.

    Raises:
        SystemExit: It is not what a problem of this version is.
    """
    try:
        found: Problem = decode(data, _ANY_PROBLEM, name)
    except FieldError as error:
        raise SystemExit(
            f"problem {error}; fix: prepare the problems again with this version"
        ) from error
    return found


def write_problems(path: Path, problems: Mapping[str, Problem]) -> None:
    """Write problems to a file that `read_problems` reads."""
    lines = {name: described(problem) for name, problem in problems.items()}
    path.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


def read_problems(path: Path) -> dict[str, Problem]:
    """Return the problems of a file by name, in its order.

    Raises:
        SystemExit: There is none, or it holds something else.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} holds no problems: {error}") from error
    if not isinstance(data, dict):
        raise SystemExit(f"{path} holds no problems by name")
    return {str(name): read_described(each, str(name)) for name, each in data.items()}
