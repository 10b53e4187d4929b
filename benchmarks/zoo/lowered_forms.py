"""Forms of a model, with passes left out too: lowered in fp16 as plans for Hopper are, whether a benchmark looks for one or tunes it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from wpk.dtypes import Precision
from wpk.lowering.lowered_model import LoweredModel, Source
from wpk.lowering.model import ModelForms
from wpk.target_features import TargetFeatures

_KEPT = 2
"""Models that are held loaded, each rewritten up to its first choice."""


@dataclass(frozen=True)
class Decisions:
    """What makes a form another one than the passes' own.

    Attributes:
        changed: Keys of the sites that are decided otherwise than usually.
        skipped: Names of the passes that are left out.
    """

    changed: frozenset[str] = frozenset()
    skipped: frozenset[str] = frozenset()

    def __xor__(self, other: Decisions) -> Decisions:
        """What only one of both has: decisions of a form, and those to be made otherwise there."""
        return Decisions(self.changed ^ other.changed, self.skipped ^ other.skipped)


OWN = Decisions()
"""Of the passes' own form: none."""


class LoweredForms:
    """Lowers one model in one form after another."""

    def __init__(self, model: Path) -> None:
        """Load nothing yet."""
        self._model = model
        self._without = lru_cache(_KEPT)(self._loaded)

    def lowered(self, decisions: Decisions = OWN) -> LoweredModel:
        """Lower the model in a form.

        Raises:
            GraphError: The model is damaged, a pass failed, or a name is no pass's.
            UnsupportedError: Some nodes cannot be carried; all are listed.
        """
        return self._without(decisions.skipped).lowered(decisions.changed)

    def _loaded(self, skipped: frozenset[str]) -> ModelForms:
        what = self._model, {}, Precision.FP16, tuple(sorted(skipped))
        source = Source(*what, features=TargetFeatures(warpgroups=True))
        return ModelForms(source, fallback=True, driven=True)
