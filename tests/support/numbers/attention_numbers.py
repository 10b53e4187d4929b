"""Attention on random data, held against float64."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wpk.libraries.attention_reference import attend
from wpk.problems import Attention


def check_attention(
    execution: Any,
    template: Any,
    problem: Attention,
    schedule: Any,
    *,
    masks: Any = None,
    spread: float = 1.0,
    leading: int | None = None,
    drawn: Sequence[Any] | None = None,
) -> None:
    """Executes on random data and holds the result against float64, as the checks' error bounds do.

    ``drawn`` are queries, keys and values, where they are not to be any.
    """
    rng = np.random.default_rng(0)
    batch = (leading or problem.batch[0].value, problem.batch[1])
    given, memory, exact = iter(drawn or ()), [], []
    for tensor, heads, rows, columns in (
        (problem.q, batch[1], problem.queries, problem.depth),
        (problem.k, problem.heads_of_keys, problem.keys, problem.depth),
        (problem.v, problem.heads_of_keys, problem.keys, problem.width),
    ):
        normal = rng.standard_normal((batch[0], heads, rows, columns)) * spread
        values = next(given, normal).astype(tensor.dtype.numpy)
        memory.append(execution.memory(tensor, values))
        exact.append(values.astype(np.float64))
    shape = (*batch, problem.queries, problem.keys)
    wide = []
    if masks is not None:
        (tensor,) = problem.scores.operands
        memory.append(execution.memory(tensor, np.broadcast_to(masks, shape)))
        wide.append(np.broadcast_to(masks, shape).astype(np.float64))
    for tensor in problem.ending.operands:
        whole = (*batch, problem.queries, problem.width)
        values = rng.standard_normal(whole).astype(tensor.dtype.numpy)
        memory.append(execution.memory(tensor, values))
        wide.append(values.astype(np.float64))
    dims = {problem.leading.free: batch[0]} if problem.leading.free else {}
    y = execution.run(
        template, problem, schedule, memory, (*batch, problem.queries, problem.width), dims
    )
    reference, tolerance = attend(problem, *exact, wide)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(reference))
    error = np.abs(np.nan_to_num(y - reference))
    with np.errstate(over="ignore"):  # what was not computed may be any number
        worst = float((error / tolerance).max())
    assert worst <= 1, f"the largest error is {worst:.3g} times what rounding explains"
