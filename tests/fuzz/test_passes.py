"""Random models keep their numbers through graph passes; what fails is made smaller by hypothesis."""

from random import Random

import onnx
from fuzzing.builder import Rejected
from fuzzing.graphs import draw
from fuzzing.rewriting import run_rewritten
from fuzzing.running import GOOD
from hypothesis import HealthCheck, given, note, reject, settings
from hypothesis import strategies as st


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(st.randoms(use_true_random=False))
def test_passes_keep_what_a_model_computes(random: Random) -> None:
    try:
        case = draw(random)
    except Rejected:
        reject()
    note(onnx.printer.to_text(case.model))
    result = run_rewritten(case)
    assert result.outcome in GOOD, result
