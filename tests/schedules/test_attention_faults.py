"""Faults planted in attention: checking mode or the comparison with float64 sees each of them."""

from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from wpk.dtypes import DType, Precision
from wpk.emulator.errors import EmulatorError
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.kernel_source import KernelSource
from wpk.launch import Launch
from wpk.problems import Attention, Epilogue, Tensor
from wpk.schedules.attention_mma import AttentionMmaSchedule, AttentionMmaTemplate

SCHEDULE = AttentionMmaSchedule(warps_m=2, warps_n=2, block_n=16, stages=2)
_HEADERS = (
    *("schedules/attention_mma.cuh", "kernels/tile_attention.cuh"),
    *("kernels/attention_staging.cuh", "kernels/tile_rows.cuh"),
)
ROWS, SIZE, HEADS = 75, 40, 2


@dataclass(frozen=True)
class Fault:
    """What is wrong, and how the headers come to have it."""

    name: str
    old: str
    new: str = ""
    precision: Precision = Precision.FP16


FAULTS = [
    Fault("keys are multiplied before they are there", "waitCopies<2 * Shape::stages - 1>();"),
    Fault("values are multiplied before they are there", "waitCopies<2 * Shape::stages - 2>();"),
    Fault(
        "a warp does not wait for the keys that others copied",
        "<2 * Shape::stages - 1>();\n        __syncthreads();",
        "<2 * Shape::stages - 1>();",
    ),
    Fault(
        "a slot is filled while others read it",
        "__syncthreads(); // the slot is free, at last for the staging",
    ),
    Fault(
        "parts are added before all are there",
        "staging.put(warp);\n    __syncthreads();",
        "staging.put(warp);",
    ),
    Fault("what was summed before is not scaled down", "*= factor[i % 4 / 2]", "*= 1.0f"),
    Fault("the sum of exponentials is not scaled down", "sum[half] *= factor[half];"),
    Fault("keys behind the last one count", "i % 2 >= Problem::keys", "i % 2 >= Shape::keys * 99"),
    Fault(
        "parts are added as if all had one maximum",
        "expf(load<float, 1>(top(part, row))[0] - largest)",
        "1.0f",
    ),
    Fault("the largest score is not everyone's", "shuffleXor(largest[half], 2)", "largest[half]"),
    Fault("the mask of another row", "i % 2 * 8;", "i % 2 * 4;"),
    Fault("a fragment's rows are exchanged", "pair[i % 2 * 2]", "pair[0]"),
    Fault(
        "values in the order of a fragment, weights in that of accumulators",
        "lane % 4 * 2 + i % 2, column",
        "lane % 4 + i % 2 * 4, column",
        Precision.TF32,
    ),
    Fault(
        "small parts are left out",
        "mmaTile(Multiply{}, sums, a, b)",
        "mmaTile(Tf32{}, sums, a, b)",
        Precision.FP32,
    ),
]


class Faulty:
    """The template with another text in the place of its headers."""

    def __init__(self, fault: Fault) -> None:
        self._fault, self._template = fault, AttentionMmaTemplate()

    def packing(self, problem: Attention, schedule: AttentionMmaSchedule) -> str | None:
        return self._template.packing(problem, schedule)

    def instantiate(
        self, problem: Attention, schedule: AttentionMmaSchedule
    ) -> tuple[KernelSource, ...]:
        (source,) = self._template.instantiate(problem, schedule)
        text, planted = source.text, 0
        for name in _HEADERS:
            header = files("wpk").joinpath(name).read_text(encoding="utf-8")
            planted += header.count(self._fault.old)
            header = header.replace(self._fault.old, self._fault.new)
            text = text.replace(f"#include <wpk/{name}>", header.replace("#pragma once", ""))
        assert planted, "the headers have nowhere to plant the fault"
        return (replace(source, text=text),)

    def launches(self, problem: Attention, schedule: AttentionMmaSchedule) -> tuple[Launch, ...]:
        (launch,) = self._template.launches(problem, schedule)
        (source,) = self.instantiate(problem, schedule)
        return (replace(launch, kernel=source.digest),)


def _problem(precision: Precision) -> Attention:
    rows = Tensor(precision.storage, (0, SIZE, SIZE * HEADS, 1))
    mask = Tensor(DType.FP32, (0, 0, ROWS, 1), 0, 4)
    scores = Epilogue(apply("Add", Acc(), Operand(0)), (mask,))
    sizes = (ROWS, ROWS, SIZE, SIZE)
    return Attention(
        *(precision, (Extent(1), HEADS), *sizes, rows, rows, rows, scores, False, rows)
    )


def _run(template: Any, execution: Any, precision: Precision) -> tuple[Any, Any]:
    """The result, and the float64 reference."""
    problem, rng = _problem(precision), np.random.default_rng(3)
    shape = (1, HEADS, ROWS, SIZE)
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


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_seen(fault: Fault, checking_execution: Any) -> None:
    far = {Precision.FP16: 4e-3, Precision.TF32: 3e-2, Precision.FP32: 2e-5}[fault.precision]
    y, reference = _run(AttentionMmaTemplate(), checking_execution, fault.precision)
    assert np.abs(y - reference).max() < far
    try:
        y, reference = _run(Faulty(fault), checking_execution, fault.precision)
    except EmulatorError:
        return
    assert not np.abs(y - reference).max() < far
