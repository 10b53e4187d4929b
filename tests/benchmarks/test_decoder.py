"""The decoder: the same file everywhere, formulas that are the file's, carried by kernels, and faults found where they are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from rows.base import Context, RowError
from rows.decoder_check import faults, layer_errors, right_logits
from rows.large import BASELINE, judge, measure
from rows.networks import OURS
from subjects import decoder_weights
from subjects.decoder import (
    EMBEDDING,
    HEAD,
    LLAMA_7B,
    LOGITS,
    Decoder,
    past_name,
    present_name,
    stream_name,
    weight_name,
)
from subjects.decoder_layers import in_numpy
from subjects.decoder_weights import data_of, draw_inputs, open_weights, write

from wpk import load, optimize
from wpk.checks.model_check import output_error
from wpk.dtypes import Precision
from wpk.lowering.model import lower_model
from wpk.problems import Attention, Matmul

GROUPED = Decoder(2, 64, 4, 2, 176, 97, past=13, new=3, batch=2)
PLAIN = replace(GROUPED, kv_heads=4, past=7, new=1)

Arrays = Mapping[str, NDArray[Any]]


@pytest.fixture(name="grouped", scope="module")
def fixture_grouped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("decoder") / "grouped.onnx"
    write(GROUPED, path)
    return path


@pytest.fixture(name="found", scope="module")
def fixture_found(grouped: Path) -> Arrays:
    """What ONNX Runtime makes of the file."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(grouped), options)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, draw_inputs(GROUPED, 1)), strict=True))


def _faults(found: Arrays, weights: Arrays) -> list[str]:
    layers = in_numpy(GROUPED, weights)
    errors = layer_errors(layers, draw_inputs(GROUPED, 1), found, weights[EMBEDDING])
    return [each.partition(": median")[0] for each in faults(errors)]


def test_the_named_size_has_6_7_g_parameters() -> None:
    assert LLAMA_7B.parameters() == 6_738_415_616


def test_a_seed_gives_the_same_file_whatever_the_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoder_weights, "_BLOCK", 2**10)
    for name, seed, cores in (("a", 0, {0}), ("b", 0, set(range(16))), ("c", 1, {0})):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: cores)
        write(GROUPED, tmp_path / f"{name}.onnx", seed)
    first, second, other = (data_of(tmp_path / f"{n}.onnx").read_bytes() for n in "abc")
    assert first == second != other


def test_the_file_is_valid_and_its_weights_are_where_it_says(grouped: Path) -> None:
    onnx.checker.check_model(str(grouped), full_check=True)
    model, weights = onnx.load(grouped), open_weights(GROUPED, grouped)
    theirs = {
        each.name: onnx.numpy_helper.to_array(each)
        for each in model.graph.initializer
        if each.name in weights
    }
    assert theirs.keys() == weights.keys()
    assert all(np.array_equal(theirs[name], array) for name, array in weights.items())


def test_weights_keep_the_size_of_what_they_multiply(grouped: Path, found: Arrays) -> None:
    for name, array in open_weights(GROUPED, grouped).items():
        numbers = array.astype(np.float64)
        if array.ndim == 1:
            assert abs(numbers.mean() - 1) < 0.1
        elif name not in (EMBEDDING,):
            into_stream = name.endswith(("o_proj.weight", "down_proj.weight"))
            size = numbers.std() * len(array) ** 0.5 * (2.0 if into_stream else 1.0)
            assert abs(size - (3.0 if "q_proj" in name else 1.0)) < 0.2, name
    assert all(np.abs(array).max() < 50 for array in found.values())


def test_the_formulas_are_the_files(grouped: Path, found: Arrays) -> None:
    weights = open_weights(GROUPED, grouped)
    assert _faults(found, weights) == []
    right = right_logits(in_numpy(GROUPED, weights), draw_inputs(GROUPED, 1), weights[EMBEDDING])
    assert output_error(found[LOGITS], right).worst < 5e-3


@pytest.mark.parametrize(
    ("name", "place"),
    [
        (weight_name(1, "self_attn.q_proj"), "layer 1: stream"),
        (weight_name(0, "self_attn.k_proj"), "layer 0: key"),
        (weight_name(1, "self_attn.v_proj"), "layer 1: value"),
        (weight_name(0, "self_attn.o_proj"), "layer 0: stream"),
        (weight_name(0, "mlp.up_proj"), "layer 0: stream"),
        (weight_name(1, "mlp.down_proj"), "layer 1: stream"),
        (HEAD, "logits"),
    ],
)
def test_a_damaged_weight_is_found_in_its_layer(
    name: str, place: str, grouped: Path, found: Arrays
) -> None:
    weights = dict(open_weights(GROUPED, grouped))
    damaged = weights[name].copy()
    damaged[8:16, 16:24] *= -1
    named = _faults(found, weights | {name: damaged})
    assert place in named
    assert {each.partition(":")[0] for each in named} == {place.partition(":")[0]}


def test_what_is_only_copied_must_be_the_same(grouped: Path, found: Arrays) -> None:
    weights = open_weights(GROUPED, grouped)
    cache, stream = found[present_name(1, "key")].copy(), found[stream_name(0)].copy()
    cache[1, 0, 5, 3] += np.float16(0.01)
    assert _faults({**found, present_name(1, "key"): cache}, weights) == ["layer 1: past keys"]
    stream[0, 0, 0] += np.float16(0.01)
    assert "embedding" in _faults({**found, stream_name(0): stream}, weights)


@pytest.mark.parametrize("decoder", [GROUPED, PLAIN], ids=["grouped", "plain"])
def test_kernels_carry_it(decoder: Decoder, tmp_path: Path) -> None:
    write(decoder, tmp_path / "m.onnx")
    program = lower_model(tmp_path / "m.onnx", {}, Precision.FP16, fallback=False).program
    kinds = [type(problem) for problem in program.problems]
    assert kinds.count(Attention) == decoder.layers
    assert kinds.count(Matmul) <= 7 * decoder.layers + 1
    assert past_name(1, "value") in program.inputs


@pytest.mark.usefixtures("one_cubin")
def test_an_engine_is_right_layer_by_layer(tmp_path: Path) -> None:
    decoder, path, plan = replace(GROUPED, layers=1), tmp_path / "m.onnx", tmp_path / "m.plan"
    write(decoder, path)
    how: dict[str, Any] = {"target": "h100", "precision": "fp16", "fallback": "off"}
    optimize(path, plan, search="static", check="off", **how)
    inputs, weights = draw_inputs(decoder, 2), open_weights(decoder, path)
    with load(plan, device="cpu") as engine:
        found = engine.run(inputs)
    errors = layer_errors(in_numpy(decoder, weights), inputs, found, weights[EMBEDDING])
    assert faults(errors) == []
    assert len(errors) == 2 + 5 * decoder.layers


def _judged(seconds: float, wrong: float, layer: float = 0.0) -> Any:
    right = np.random.default_rng(0).standard_normal((2, 1, 97))
    near = right * (1 + 1e-3)
    errors = {"layer 0: stream": output_error(right + layer, right)}
    scores = {OURS: right + wrong, BASELINE: near}
    samples = {OURS: [seconds] * 20, BASELINE: [2e-3] * 20}
    return judge(GROUPED, errors, scores, right, samples, 1e12)


def test_an_engine_passes_where_it_is_right() -> None:
    right = _judged(1e-3, 0.0)
    assert right.passed
    size = 2 * (GROUPED.parameters() - 97 * 64)
    assert right.figures["share_of_bandwidth"][OURS] == pytest.approx(size / 1e-3 / 1e12)
    assert right.figures["speedup"]["median"] == pytest.approx(2.0)
    assert not _judged(1e-3, 0.3).passed
    wrong = _judged(1e-3, 0.0, 0.3)
    assert not wrong.passed
    assert "layer 0: stream" in wrong.summary


def test_the_files_are_removed_where_a_command_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: Context, *arguments: object) -> None:
        assert data_of(tmp_path / "model.onnx").exists()
        raise RowError("exit code 1")

    monkeypatch.setattr(Context, "wpk", fails)
    with pytest.raises(RowError, match="exit code 1"):
        measure(GROUPED, Context(tmp_path, tmp_path, 1e9))
    assert not data_of(tmp_path / "model.onnx").exists()
