"""Which operators are far from their bounds, and why: nothing is slow in silence."""

from wpk.report.plans.distance.distant import (
    FAR,
    NOTICEABLE,
    DistantFacts,
    distant_lines,
    distant_operators,
    distant_sentences,
    distant_words,
    launch_floor,
)
