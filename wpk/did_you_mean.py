"""Words about a name that does not exist: what was probably meant, and what there is."""

from collections.abc import Iterable
from difflib import get_close_matches

_NEAR = 0.5
"""How alike two names are that are typed for each other: half their letters, in order."""


def choices_words(word: str, known: Iterable[str]) -> str:
    """``did you mean 'fp16'? there are fp32, tf32, fp16``, or only what there is.

    Args:
        word: What was given.
        known: What there is, in the order to say it.
    """
    names = list(known)
    if not names:
        return "there are none"
    there_are = f"there {'are' if len(names) > 1 else 'is only'} {', '.join(names)}"
    near = nearest(word, names)
    if not near:
        return there_are
    return f"did you mean {' or '.join(map(repr, near))}? {there_are}"


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """At most two names that a word may stand for: spelt much like it, or holding it."""
    names = list(known)
    near = get_close_matches(word, names, 2, _NEAR)
    holding = [name for name in names if len(word) > 2 and word in name and name not in near]
    return (near + holding)[:2]
