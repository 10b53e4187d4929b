"""Words about a name that does not exist: what was probably meant, and what there is."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

_NEAR = 0.5
"""How alike two names are that are typed for each other: half their letters, in order."""

_TELLING = 4
"""Letters of a piece that says which name was meant."""

_SYNONYMS = {
    "cuda": "gpu",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "bfloat16": "bf16",
}
"""What other programs call the same thing."""


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
    """At most two names that a word may stand for: spelt much like it, or holding a piece of it."""
    names = list(known)
    meant = [name for name in names if name == _SYNONYMS.get(word.partition(":")[0].lower())]
    if meant:
        return meant
    near = get_close_matches(word, names, 2, _NEAR)
    pieces = [piece for piece in re.split(r"[-_ ]", word.lower()) if len(piece) >= _TELLING]
    holding = [name for name in names if any(piece in name.lower() for piece in pieces)]
    return list(dict.fromkeys((*near, *holding)))[:2]
