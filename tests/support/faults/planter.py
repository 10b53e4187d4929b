"""Plants faults in kernels, at points that their text names, and in Python, where one piece of it stands once.

    plant(template, Fault("products begin before their tiles are there", drop("tiles_awaited")))

A point is a statement of a header or a kernel that is marked ``// @name``: from the line that the name stands on,
or from the line below a name that stands alone, to the first line that ends with ``;``, ``{`` or ``}``. Layout and
comments are nobody's business: neither may decide whether a fault can be planted. Where a name is gone, or there is
nothing to change, that is a `PlantError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from wpk.kernel_source import KernelSource
from wpk.launch import Launch

Edit = Callable[[str], str]
"""Gives a text with its fault; raises `PlantError` where the text has no place for it."""

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


def drop(point: str) -> Edit:
    """The statement is missing."""
    return put(point, ";")


def put(point: str, text: str) -> Edit:
    """Another text stands in the statement's place."""
    return lambda whole: _at(point, whole, lambda _: text)


def before(point: str, text: str) -> Edit:
    """A text stands in front of the statement."""
    return lambda whole: _at(point, whole, lambda statement: f"{text}\n{statement}")


def behind(point: str, text: str) -> Edit:
    """A text stands behind the statement."""
    return lambda whole: _at(point, whole, lambda statement: f"{statement}\n{text}")


def change(point: str, old: str, new: str) -> Edit:
    """A part of the statement, which is there once, is another one."""
    return lambda whole: _at(
        point, whole, lambda statement: _changed(f"'{point}'", statement, old, new)
    )


def rewrite(old: str, new: str) -> Edit:
    """A piece of Python that is there once is another one; for statements of kernels there is `change`."""
    return lambda whole: _changed("the module", whole, old, new)


def move(point: str, *, before: str) -> Edit:
    """The statement stands in front of another one."""

    def moved(whole: str) -> str:
        taken: list[str] = []

        def take(statement: str) -> str:
            taken.append(statement)
            return ";"

        rest = _at(point, whole, take)
        if len(taken) != 1:
            raise PlantError(f"point '{point}' is {len(taken)} times there: one can be moved")
        return _at(before, rest, lambda statement: f"{taken[0]}\n{statement}")

    return moved


def together(*edits: Edit) -> Edit:
    """All of them, one after the other."""

    def edited(whole: str) -> str:
        for edit in edits:
            whole = edit(whole)
        return whole

    return edited


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


def _changed(place: str, text: str, old: str, new: str) -> str:
    """The text after a change of the one place where these tokens follow each other."""
    tokens = [rf"\b{t}\b" if t.isidentifier() else re.escape(t) for t in _TOKEN.findall(old)]
    found = list(re.finditer(_BETWEEN.join(tokens), text))
    if len(found) != 1:
        raise PlantError(
            f"{place}: '{old}' is there {len(found)} times; fix: say what is there once"
        )
    return text[: found[0].start()] + new.strip() + text[found[0].end() :]


def _at(point: str, whole: str, edit: Callable[[str], str]) -> str:
    """The text after an edit of the statement at every point of this name."""
    mark = re.compile(rf"// @{re.escape(point)}\b")
    lines = whole.split("\n")
    places = [number for number, line in enumerate(lines) if mark.search(line)]
    if not places:
        raise PlantError(
            f"no point '{point}' in the text; fix: mark its statement with // @{point}"
        )
    for number in reversed(places):
        alone = lines[number].strip().startswith("//")
        first = number + alone
        last = first
        while not _COMMENT.sub("", lines[last]).rstrip().endswith((";", "{", "}")):
            last += 1
        statement = "\n".join(_COMMENT.sub("", line) for line in lines[first : last + 1])
        lines[number : last + 1] = [edit(statement)]
    return "\n".join(lines)
