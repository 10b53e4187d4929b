"""Templates with a fault: another text in the place of one in the headers that their units include."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files
from typing import Any

from wpk.kernel_source import KernelSource
from wpk.launch import Launch

_INCLUDE = re.compile(r"#include <wpk/(\S+)>\n")


def plant(template: Any, old: str, new: str) -> Any:
    """The template, with ``new`` for every ``old`` in what it generates; nothing else of it changes."""

    class Faulty(type(template)):  # type: ignore[misc]
        def instantiate(self, problem: Any, schedule: Any) -> tuple[KernelSource, ...]:
            (source,) = super().instantiate(problem, schedule)
            text = _inlined(source.text, set())
            assert old in text, "the headers have nowhere to plant the fault"
            return (replace(source, text=text.replace(old, new)),)

        def launches(self, problem: Any, schedule: Any) -> tuple[Launch, ...]:
            (launch,) = super().launches(problem, schedule)
            (source,) = self.instantiate(problem, schedule)
            return (replace(launch, kernel=source.digest),)

    return Faulty()


def _inlined(text: str, seen: set[str]) -> str:
    """The text with its headers in it, each once."""

    def header(match: re.Match[str]) -> str:
        name = match[1]
        if name in seen:
            return ""
        seen.add(name)
        own = files("wpk").joinpath(name).read_text(encoding="utf-8")
        return _inlined(own.replace("#pragma once\n", ""), seen)

    return _INCLUDE.sub(header, text)
