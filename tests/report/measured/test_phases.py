"""How long making a plan took is said, its long phases by name."""

from wpk.plan.measurement import EngineMeasurement, EngineVariant
from wpk.report.plans.measured import phase_sentences

VARIANT = EngineVariant("mixed", 1e-3, 1e-3, 1e-3, 0, 1)


def test_the_longest_phases_come_first_and_the_short_ones_are_summed() -> None:
    phases = {"graph passes": 2.0, "tuning problems": 40.0, "beginning": 1.0, "waiting": 17.0}
    (said,) = phase_sentences(EngineMeasurement((VARIANT,), "mixed", (), phases))
    assert said == "Made in 60.0 s: tuning problems 40.0 s, waiting 17.0 s, others 3.0 s."


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert phase_sentences(EngineMeasurement((VARIANT,), "mixed")) == []
