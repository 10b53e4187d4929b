"""What the numbers of a schedule mean, in the words of its template."""

from wpk.candidate import Candidate, Kind
from wpk.options import help_of
from wpk.schedules import TEMPLATE_OF


def explained(candidate: Candidate) -> list[tuple[str, int, str]]:
    """Each parameter with its value, and what it means; nothing for a library's."""
    if candidate.maker.kind is Kind.LIBRARY:
        return []
    template = TEMPLATE_OF.get(candidate.maker.name)
    words = {} if template is None else _meanings(template.schedule_type)
    return [(name, value, words.get(name, "")) for name, value in candidate.configuration]


def short_meanings(candidate: Candidate) -> str:
    """The same in a line for each parameter, for a tooltip."""
    return "\n".join(f"{name} {value}: {words}" for name, value, words in explained(candidate))


def _meanings(schedule: type) -> dict[str, str]:
    """The attributes of a class and of those that it is made of, as their docstrings explain them."""
    found: dict[str, str] = {}
    for kind in schedule.__mro__:
        if kind.__doc__:
            found = {**help_of(kind), **found}
    return found
