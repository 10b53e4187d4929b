"""What checks found, in words."""

from collections.abc import Iterable

from wpk.plan import Check, CheckMode, Outcome

UNCHECKED = "unchecked"
"""The word for something that no check looked at."""

_WORDS = {Outcome.OK: "ok", Outcome.FAILED: "WRONG", Outcome.INCONCLUSIVE: "inconclusive"}

QUICK_WORDS = (
    "checked quickly: at the tuned sizes and on one drawn input only, and without second evaluators "
    "of the graph passes"
)
"""What ``--check quick`` leaves out."""


PROOF_WORDS = (
    "where the whole engine's comparison is inconclusive, the proof rests on the graph passes, each "
    "validated in float64, and on every operator checked alone"
)
"""What vouches for a plan beside an inconclusive check."""


def outcome_word(outcome: Outcome) -> str:
    """Return the word that stands for an outcome in every table; the word of a failure stands out."""
    return _WORDS[outcome]


def state_word(checks: Iterable[Check]) -> str:
    """Return the word for several checks of one thing: the worst of them, or `UNCHECKED`."""
    outcomes = {check.outcome for check in checks}
    for outcome in (Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.OK):
        if outcome in outcomes:
            return outcome_word(outcome)
    return UNCHECKED


def mode_words(mode: CheckMode) -> str:
    """Say what was left out; empty where nothing was."""
    return {CheckMode.QUICK: QUICK_WORDS, CheckMode.OFF: "written with --check off"}.get(mode, "")


def remarks(mode: CheckMode, checks: Iterable[Check]) -> list[str]:
    """Say what a reader should know of the checks of a whole engine, beside what each of them found."""
    doubt = any(check.outcome is Outcome.INCONCLUSIVE for check in checks)
    return [*filter(None, [mode_words(mode)]), *([PROOF_WORDS] if doubt else [])]
