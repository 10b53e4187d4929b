"""Faults planted in attention: checking mode or the comparison with float64 sees each of them."""

from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, drop, plant, put

from wpk.dtypes import DType, Precision
from wpk.emulator import EmulatorError
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.problems import Attention, Epilogue, Tensor
from wpk.schedules.attention_mma import AttentionMmaSchedule, AttentionMmaTemplate

SCHEDULE = AttentionMmaSchedule(warps_m=2, warps_n=2, block_n=16, stages=2)
ROWS, SIZE, HEADS = 75, 40, 2

FAULTS = [
    Fault("keys are multiplied before they are there", drop("keys_awaited")),
    Fault("values are multiplied before they are there", drop("values_awaited")),
    Fault("a warp does not wait for the keys that others copied", drop("keys_there")),
    Fault("a slot is filled while others read it", drop("slot_free")),
    Fault("parts are added before all are there", drop("parts_there")),
    Fault("what was summed before is not scaled down", drop("values_rescaled")),
    Fault("the sum of exponentials is not scaled down", drop("sum_rescaled")),
    Fault(
        "keys behind the last one count", change("last_key", "lengths.keys()", "Shape::keys * 99")
    ),
    Fault("no step is the last one", change("last_step", "Shape::keys", "0")),
    Fault(
        "powers of e are those of two", change("to_powers_of_two", "1.4426950408889634f", "1.0f")
    ),
    Fault(
        "parts are added as if all had one maximum",
        put("part_scaled", "const float factor = 1.0f;"),
    ),
    Fault("the largest score is not everyone's", drop("largest_shared")),
    Fault("the mask of another row", change("mask_row", "i % 2 * 8", "i % 2 * 4")),
    Fault(
        "a fragment's rows are exchanged", change("weights_packed", "pair[i % 2 * 2]", "pair[0]")
    ),
]
OF_FP32_WORDS = {
    Precision.TF32: Fault(
        "values in the order of a fragment, weights in that of accumulators",
        change("value_row", "lane % 4 * 2 + i % 2", "lane % 4 + i % 2 * 4"),
    ),
    Precision.FP32: Fault("small parts are left out", change("products", "Multiply{}", "Tf32{}")),
}
WHOLE_ROWS = Fault(
    "a thread's next row is not where it belongs", change("row_below", "turn *", "2 * turn *")
)
"""Of rows of 64 elements a thread copies two of a tile, of those of SIZE only one."""

CASES = [
    *((fault, Precision.FP16, SIZE) for fault in FAULTS),
    *((fault, precision, SIZE) for precision, fault in OF_FP32_WORDS.items()),
    (WHOLE_ROWS, Precision.FP16, 64),
]


def _problem(precision: Precision, size: int) -> Attention:
    rows = Tensor(precision.storage, (0, size, size * HEADS, 1))
    mask = Tensor(DType.FP32, (0, 0, ROWS, 1), 0, 4)
    scores = Epilogue(apply("Add", Acc(), Operand(0)), (mask,))
    sizes = (ROWS, ROWS, size, size)
    return Attention(
        *(precision, (Extent(1), HEADS), *sizes, rows, rows, rows, scores, False, rows)
    )


def _run(template: Any, execution: Any, precision: Precision, size: int) -> tuple[Any, Any]:
    """The result, and the float64 reference."""
    problem, rng = _problem(precision, size), np.random.default_rng(3)
    shape = (1, HEADS, ROWS, size)
    drawn = [rng.standard_normal(shape).astype(precision.storage.numpy) for _ in range(3)]
    mask = (4 * rng.standard_normal((ROWS, ROWS))).astype(np.float32)
    tensors = (problem.q, problem.k, problem.v)
    memory = [execution.memory(t, x) for t, x in zip(tensors, drawn, strict=True)]
    memory.append(np.ascontiguousarray(mask).reshape(-1))
    y = execution.run(template, problem, SCHEDULE, memory, shape)
    q, k, v = (x.astype(np.float64) for x in drawn)
    scores = q @ k.swapaxes(-1, -2) + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return y, weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize(
    ("fault", "precision", "size"), CASES, ids=[fault.name for fault, *_ in CASES]
)
def test_a_planted_fault_is_seen(
    fault: Fault, precision: Precision, size: int, checking_execution: Any
) -> None:
    far = {Precision.FP16: 4e-3, Precision.TF32: 3e-2, Precision.FP32: 2e-5}[precision]
    right = AttentionMmaTemplate()
    y, reference = _run(right, checking_execution, precision, size)
    assert np.abs(y - reference).max() < far
    try:
        y, reference = _run(plant(right, fault), checking_execution, precision, size)
    except EmulatorError:
        return
    assert not np.abs(y - reference).max() < far
