"""Plants faults in kernels, at points that their text names, and in Python, where one piece of it stands once.

    plant(template, Fault("products begin before their tiles are there", drop("tiles_awaited")))

A point is a statement of a header or a kernel that is marked ``// @name``: from the line that the name stands on,
or from the line below a name that stands alone, to the first line that ends with ``;``, ``{`` or ``}``. Layout and
comments are nobody's business: neither may decide whether a fault can be planted. Where a name is gone, or there is
nothing to change, that is a `PlantError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from typing import Any

from wpk.kernel_source import KernelSource
from wpk.launch import Launch

Edit = Callable[[str], str]
"""Gives a text with its fault; raises `PlantError` where the text has no place for it. It can be pickled."""

_INCLUDE = re.compile(r"#include <wpk/(\S+)>\n")
_COMMENT = re.compile(r"\s*//.*$")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_BETWEEN = r"(?:\s|#[^\n]*)*"


class PlantError(Exception):
    """There is no place for a fault."""


@dataclass(frozen=True)
class Fault:
    """What is wrong.

    Attributes:
        name: In words.
        edit: What plants it.
        message: What an error that is due to it says; a pattern, empty where any error or wrong number will do.
    """

    name: str
    edit: Edit
    message: str = ""


def whole(text: str) -> str:
    """No fault."""
    return text


def drop(point: str) -> Edit:
    """The statement is missing."""
    return put(point, ";")


def put(point: str, text: str) -> Edit:
    """Another text stands in the statement's place."""
    return partial(_at, point, partial(_framed, text, "", ""))


def before(point: str, text: str) -> Edit:
    """A text stands in front of the statement."""
    return partial(_at, point, partial(_framed, None, f"{text}\n", ""))


def behind(point: str, text: str) -> Edit:
    """A text stands behind the statement."""
    return partial(_at, point, partial(_framed, None, "", f"\n{text}"))


def change(point: str, old: str, new: str) -> Edit:
    """A part of the statement, which is there once, is another one."""
    return partial(_at, point, partial(_changed, f"'{point}'", old, new))


def rewrite(old: str, new: str) -> Edit:
    """A piece of Python that is there once is another one; for statements of kernels there is `change`."""
    return partial(_changed, "the module", old, new)


def move(point: str, *, before: str) -> Edit:
    """The statement stands in front of another one."""
    return partial(_moved, point, before)


def together(*edits: Edit) -> Edit:
    """All of them, one after the other."""
    return partial(_one_by_one, edits)


def plant(template: Any, fault: Fault) -> Any:
    """The template with a fault in what it generates, headers included; nothing else of it changes."""

    class Faulty(type(template)):  # type: ignore[misc]
        def instantiate(self, problem: Any, schedule: Any) -> tuple[KernelSource, ...]:
            (source,) = super().instantiate(problem, schedule)
            return (replace(source, text=fault.edit(inlined(source.text))),)

        def launches(self, problem: Any, schedule: Any) -> tuple[Launch, ...]:
            (launch,) = super().launches(problem, schedule)
            (source,) = self.instantiate(problem, schedule)
            return (replace(launch, kernel=source.digest),)

    faulty = copy(template)
    object.__setattr__(faulty, "__class__", Faulty)
    return faulty


def inlined(text: str) -> str:
    """The text with wpk's headers in it, each once."""
    return _inlined(text, set())


def _inlined(text: str, seen: set[str]) -> str:
    def header(match: re.Match[str]) -> str:
        name = match[1]
        if name in seen:
            return ""
        seen.add(name)
        own = files("wpk").joinpath(name).read_text(encoding="utf-8")
        return _inlined(own.replace("#pragma once\n", ""), seen)

    return _INCLUDE.sub(header, text)


def _framed(instead: str | None, front: str, end: str, statement: str) -> str:
    return f"{front}{statement if instead is None else instead}{end}"


def _changed(place: str, old: str, new: str, text: str) -> str:
    """The text after a change of the one place where these tokens follow each other."""
    tokens = [rf"\b{t}\b" if t.isidentifier() else re.escape(t) for t in _TOKEN.findall(old)]
    found = list(re.finditer(_BETWEEN.join(tokens), text))
    if len(found) != 1:
        raise PlantError(
            f"{place}: '{old}' is there {len(found)} times; fix: say what is there once"
        )
    return text[: found[0].start()] + new.strip() + text[found[0].end() :]


def _moved(point: str, before: str, text: str) -> str:
    taken: list[str] = []

    def take(statement: str) -> str:
        taken.append(statement)
        return ";"

    rest = _at(point, take, text)
    if len(taken) != 1:
        raise PlantError(
            f"point '{point}' is {len(taken)} times there; fix: move what is there once"
        )
    return _at(before, partial(_framed, None, f"{taken[0]}\n", ""), rest)


def _one_by_one(edits: Sequence[Edit], text: str) -> str:
    for edit in edits:
        text = edit(text)
    return text


def _at(point: str, edit: Edit, text: str) -> str:
    """The text after an edit of the statement at every point of this name."""
    mark = re.compile(rf"// @{re.escape(point)}\b")
    lines = text.split("\n")
    places = [number for number, line in enumerate(lines) if mark.search(line)]
    if not places:
        raise PlantError(
            f"no point '{point}' in the text; fix: mark its statement with // @{point}"
        )
    for number in reversed(places):
        first = last = number + lines[number].strip().startswith("//")
        while not _COMMENT.sub("", lines[last]).rstrip().endswith((";", "{", "}")):
            last += 1
        statement = "\n".join(_COMMENT.sub("", line) for line in lines[first : last + 1])
        lines[number : last + 1] = [edit(statement)]
    return "\n".join(lines)
