"""Rows of recurrent stacks: the file computes what torch's formulas say, and rows are judged as they say."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import onnxruntime
import pytest
from rows.base import RowError
from rows.networks import OURS
from rows.recurrent import BASELINE, STACKS, judge, judge_mean, rows
from subjects.recurrent import LAYERS, STEPS, Stack, model, weights

from wpk.plan.measurement import Ratio


def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def _lstm(sums: Any, h: Any, c: Any, given: Any) -> Any:
    """torch.nn.LSTM's formulas: gates i, f, g, o."""
    i, f, g, o = np.split(sums + h @ given("weight_hh").T + given("bias_hh"), 4, -1)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(c), c


def _gru(sums: Any, h: Any, c: Any, given: Any) -> Any:
    """torch.nn.GRU's formulas: gates r, z, n."""
    own = np.split(h @ given("weight_hh").T + given("bias_hh"), 3, -1)
    parts = np.split(sums, 3, -1)
    r, z = (_sigmoid(parts[k] + own[k]) for k in (0, 1))
    n = np.tanh(parts[2] + r * own[2])
    return (1 - z) * n + z * h, c


@pytest.mark.parametrize(("cell", "step"), [("LSTM", _lstm), ("GRU", _gru)])
def test_the_file_computes_what_torch_documents(cell: str, step: Any) -> None:
    stack = Stack(cell, 8, 3)
    arrays = {name: a.astype(np.float64) for name, a in weights(stack).items()}
    x = np.random.default_rng(0).standard_normal(stack.shape).astype(np.float32)
    y = x.astype(np.float64)
    for layer in range(LAYERS):
        given = lambda name, layer=layer: arrays[f"{name}_l{layer}"]  # noqa: E731
        h = c = np.zeros((3, 8))
        states = []
        for t in range(STEPS):
            sums = y[t] @ given("weight_ih").T + given("bias_ih")
            h, c = step(sums, h, c, given)
            states.append(h)
        y = np.stack(states)
    session = onnxruntime.InferenceSession(model(stack, weights(stack)).SerializeToString())
    (found,) = session.run(None, {"x": x})
    np.testing.assert_allclose(found, y, rtol=1e-5, atol=1e-6)


def _judged(ours: float, error: float) -> Any:
    right = np.ones((4, 4))
    samples = {OURS: [ours] * 20, BASELINE: [1e-4] * 20}
    near = np.float32(1.0 + 1e-4)
    outputs = {OURS: np.full((4, 4), 1 + error, np.float32), BASELINE: np.full((4, 4), near)}
    return judge(samples, outputs, right)


def test_a_stack_passes_where_it_is_no_slower_and_right() -> None:
    assert _judged(0.9e-4, 1e-4).passed
    assert not _judged(1.1e-4, 1e-4).passed
    wrong = _judged(0.9e-4, 0.2)
    assert not wrong.passed
    assert "WRONG" in wrong.summary


def test_all_stacks_together_have_a_mean_and_a_least() -> None:
    def records(*speedups: float) -> dict[str, Any]:
        pairs = zip(STACKS, speedups, strict=True)
        return {
            f"recurrent.{s}": {"figures": {"speedup": asdict(Ratio(v, v, v))}} for s, v in pairs
        }

    assert judge_mean(records(*[1.4] * 8)).passed
    assert not judge_mean(records(*[1.25] * 8)).passed  # the mean
    assert not judge_mean(records(*[2.0] * 7, 0.9)).passed  # the least
    with pytest.raises(RowError, match=r"not measured yet: lstm\.h256\.b1"):
        judge_mean({})


def test_there_is_a_row_for_each_stack_and_one_for_all() -> None:
    assert [row.name for row in rows()] == [
        *(
            f"recurrent.{cell}.h{h}.b{b}"
            for cell in ("lstm", "gru")
            for h in (256, 1024)
            for b in (1, 32)
        ),
        "recurrent.mean",
    ]
