"""HTML that is escaped by construction: only what `tag` made is markup, every other text is text."""

import html
from collections.abc import Iterable

from wpk.report.text import visible

_VOID = ("meta", "rect", "path", "line", "circle", "wbr", "input")


class Html(str):
    """Markup. Plain strings are text and become markup only through `tag`."""

    __slots__ = ()


LONGEST = 1000
"""Most characters of one piece of text: longer ones are names that nobody reads."""

Attribute = str | int | float | bool | None


def tag(name: str, /, *children: str, **attributes: Attribute) -> Html:
    """Return an element.

    Args:
        name: Name of the element.
        children: Its content in order: markup as it is, plain strings escaped.
        attributes: By name; underscores become hyphens and one at the end falls away (``class_``).
            True writes the bare name, False and None nothing.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID and not children:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{joined(children)}</{name}>")


def joined(parts: Iterable[str]) -> Html:
    """Return parts in sequence, plain strings escaped and shortened to `LONGEST`."""
    return Html("".join(part if isinstance(part, Html) else _escaped(part) for part in parts))


def section(name: str, title: str, *children: str) -> Html:
    """Return a section of the page with its heading; ``name`` is its id."""
    return tag("section", tag("h2", title), *children, id=name)


def stretched(shapes: Iterable[Html], width: int, height: int) -> Html:
    """Return a drawing that takes whatever size it is given, and says nothing new."""
    box = f"0 0 {width} {height}"
    return tag("svg", *shapes, viewBox=box, preserveAspectRatio="none", aria_hidden="true")


def table_head(labels: Iterable[str]) -> Html:
    """Return the head of a table, a cell for each label."""
    return tag("thead", tag("tr", *(tag("th", label, scope="col") for label in labels)))


def _escaped(content: str) -> str:
    return html.escape(visible(content, LONGEST))


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    number = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f' {name}="{_escaped(number)}"'
