"""Signs and words that several sections of the page share."""

from wpk.plan import Check
from wpk.problems.signs import DASH
from wpk.report.plans.check_words import outcome_word
from wpk.report.plans.facts import LaunchFacts
from wpk.report.plans.page.markup import LONGEST, Html, joined, tag
from wpk.report.text import visible

DIGEST = 12
"""Digits of a digest that are shown."""


def breakable(name: str) -> Html:
    """Return a name that a narrow column breaks behind an underscore, not within a word."""
    pieces = [f"{piece}_" for piece in visible(name, LONGEST).split("_")]
    pieces[-1] = pieces[-1][:-1]
    parts: list[str] = []
    for piece in pieces:
        parts += [piece, tag("wbr")]
    return joined(parts[:-1])


def state_mark(state: str) -> Html:
    """Return a check's outcome with its sign."""
    sign = {"ok": "✓", "WRONG": "✗", "inconclusive": "?"}.get(state, DASH)
    return tag("span", f"{sign} {state}", class_=f"state {state.lower()}")


def source_mark(launch: LaunchFacts) -> Html:
    """Return the digest of a launch's source, once where cubin and CPU agree."""
    cubin, cpu = launch.cubin_source[:DIGEST], launch.cpu_source[:DIGEST]
    if cubin == cpu:
        title = "one source: the cubin was compiled from it, and the CPU device executes it"
        return tag("span", tag("code", cubin), " = CPU", class_="digest", title=title)
    title = "this installation generates another source, and would not execute the plan on the CPU"
    return tag("span", tag("code", cubin), " ≠ here", class_="digest differs", title=title)


def kind_class(kind: str) -> str:
    """Return the style class of a family."""
    return f"kind-{kind.replace(' ', '-')}"


def check_items(checks: tuple[Check, ...]) -> Html:
    """Return a list of checks with their numbers."""
    items = [
        tag(
            "li",
            state_mark(outcome_word(check.outcome)),
            " ",
            tag("b", check.name),
            f": {check.detail}",
        )
        for check in checks
    ]
    return tag("ul", *items, class_="checks") if items else tag("p", "Not checked.")
