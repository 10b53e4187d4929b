"""Models whose references do not fit into memory are refused before the process is ended for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from wpk.dtypes import Precision
from wpk.errors import EngineError
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model
from wpk.phases import Phases
from wpk.trial_bench import host_memory
from wpk.trial_bench.model_cases import ModelCases

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 8, 20, 20] x, float[8, 8, 3, 3] w) => (float[4, 8, 10, 10] y)
{
    a = Conv<pads = [1, 1, 1, 1]>(x, w)
    b = Relu(a)
    c = Conv<pads = [1, 1, 1, 1]>(b, w)
    d = Add(c, x)
    y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(d)
}
"""


@pytest.fixture
def lowered(tmp_path: Path) -> LoweredModel:
    model = onnx.parser.parse_model(MODEL)
    weights = np.random.default_rng(0).standard_normal((8, 8, 3, 3)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    del model.graph.input[1]
    onnx.save(model, tmp_path / "model.onnx")
    return lower_model(tmp_path / "model.onnx", {}, Precision.FP32)


def test_what_references_take_is_known_before_they_are_computed(lowered: LoweredModel) -> None:
    model_cases = ModelCases(lowered, 0, Phases())
    assert model_cases.coming_bytes == host_memory.reference_bytes(lowered.program)
    cases = model_cases.values()
    held = {id(array): array.nbytes for case in cases for array in case.memory.values()}
    for each in (case.result for case in cases if case.result is not None):
        allowed = [a.whole if a.floor is None else a.floor for a in each.tolerances.values()]
        arrays = (*each.outputs.values(), *allowed)
        held |= {id(array): array.nbytes for array in arrays}
    taken = sum(held.values())
    model_cases.finish()
    assert model_cases.coming_bytes == 0
    assert 0.95 * taken <= host_memory.reference_bytes(lowered.program) <= 1.2 * taken


@pytest.mark.parametrize("free", [0.9, 1.1])
def test_a_model_that_does_not_fit_is_refused(
    lowered: LoweredModel, monkeypatch: pytest.MonkeyPatch, free: float
) -> None:
    needed = host_memory.SEEDS * host_memory.reference_bytes(lowered.program)
    monkeypatch.setattr(host_memory, "free_bytes", lambda: int(free * needed))
    if free > 1:
        host_memory.require_memory(lowered.program)
        return
    with pytest.raises(EngineError, match=r"take 0\.0 GiB of .* and 0\.0 GiB are free") as error:
        host_memory.require_memory(lowered.program)
    assert "--shapes" in error.value.fix


def test_of_other_problems_only_those_whose_references_fit_are_measured(
    lowered: LoweredModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    has = dict.fromkeys(lowered.program.problems, lowered.program)
    first, *_, last = has
    product, pooled = (2 * 16 * 4 * 8 * size for size in (20 * 20, 10 * 10))
    for free, expected in ((product + pooled, [first, last]), (pooled, [last]), (0, [])):
        monkeypatch.setattr(host_memory, "free_bytes", lambda free=free: free)
        assert host_memory.fitting(has) == expected
        monkeypatch.setattr(host_memory, "free_bytes", lambda free=free: free + 1000)
        assert host_memory.fitting(has, coming=1000) == expected
    monkeypatch.setattr(host_memory, "free_bytes", lambda: None)  # it cannot be told
    assert host_memory.fitting(has) == list(has)
