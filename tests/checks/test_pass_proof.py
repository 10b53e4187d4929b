"""A pass that changes what the model computes is named before anything is compiled."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.checks import pass_proof
from wpk.checks.pass_proof import prove_passes, proven
from wpk.checks.samples.few import KEPT
from wpk.checks.scope import Scope
from wpk.dtypes import Precision
from wpk.errors import VerificationError
from wpk.graph_passes import exact_values
from wpk.graph_passes.core import GraphEditor
from wpk.graph_passes.core.exact import (
    ExactConstant,
    joined_constant,
    moved_constant,
    rounded_constant,
)
from wpk.graph_passes.fold import batch_norm
from wpk.graph_passes.fold.linear_operator import ChannelAffine
from wpk.lowering.model import LARGE, lower_model
from wpk.plan.plan import Outcome


def silent(stage: str, done: int, total: int) -> None:
    """No progress."""


def scaled(
    factor: float, exactly: Callable[[gs.Node], ChannelAffine | str]
) -> Callable[[gs.Node], ChannelAffine | str]:
    def affine(norm: gs.Node) -> ChannelAffine | str:
        found = exactly(norm)
        return found if isinstance(found, str) else ChannelAffine(found.scale * factor, found.shift)

    return affine


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A convolution, its normalisation and an activation, of a free batch."""
    text = """<ir_version: 8, opset_import: ["": 17]>
    m (float[N,2,4,4] x) => (float[N,3,4,4] y)
    <float[3] g = {1, 0.5, 2}, float[3] b = {0, 1, -1}, float[3] mean = {0.1, 0.2, 0.3},
     float[3] var = {1, 2, 0.5}> {
        c = Conv(x, w)
        n = BatchNormalization(c, g, b, mean, var)
        y = Relu(n)
    }"""
    model = onnx.parser.parse_model(text)
    weight = np.random.default_rng(0).standard_normal((3, 2, 1, 1)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16])
@pytest.mark.parametrize("factor", [3.0, 1 + 1e-6])
def test_the_first_wrong_pass_is_named_with_its_tensor_and_nodes(
    model: Path, factor: float, precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_norm, "_affine", scaled(factor, batch_norm._affine))
    lowered = lower_model(model, {}, precision)
    with pytest.raises(VerificationError, match=r"pass 'batch-norm-after': tensor '.*' made by"):
        proven(lowered, Scope(), silent)


def test_the_other_tensors_that_differ_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    m (float[2,2,4,4] x) => (float[2,2,4,4] y, float[2,2,4,4] z)
    <float[2] g = {1, 0.5}, float[2] b = {0, 1}, float[2] mean = {0.1, 0.2}, float[2] var = {1, 2},
     float[2,2,1,1] w = {1, 2, 3, 4}> {
        c = Conv(x, w)  y = BatchNormalization(c, g, b, mean, var)
        d = Conv(y, w)  z = BatchNormalization(d, g, b, mean, var)
    }"""
    path = tmp_path / "two.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    monkeypatch.setattr(batch_norm, "_affine", scaled(3.0, batch_norm._affine))
    with pytest.raises(VerificationError, match=r"; and 1 tensors more\n"):
        proven(lower_model(path, {}, Precision.FP32), Scope(), silent)


@pytest.mark.parametrize("quick", [False, True])
def test_right_passes_are_proved_at_every_size(model: Path, quick: bool) -> None:
    lowered = lower_model(model, {}, Precision.FP32)
    proof = prove_passes(lowered, Scope(quick=quick), silent)
    assert all(check.outcome is Outcome.OK for check in proof.checks)
    sizes = [each.dims["N"] for each in proof.rounds]
    assert sizes == ([1] if quick else [1, 3, 17])
    assert len(proof.checks) == len(sizes) + (not quick)  # the second evaluator
    for each, outputs in zip(proof.rounds, proof.unrounded, strict=True):
        few = min(each.dims["N"], KEPT) if each.dims["N"] >= 2 * KEPT else each.dims["N"]
        assert {some.array.shape[0] for some in outputs.values()} == {few}


@pytest.mark.parametrize("quick", [False, True])
def test_kinds_of_nodes_are_judged_at_the_first_size_alone(
    model: Path, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, asked = pass_proof.compare_graphs, []

    def compare(*given: Any) -> Any:
        asked.append(given[3] is not None)
        return right(*given)

    monkeypatch.setattr(pass_proof, "compare_graphs", compare)
    prove_passes(lower_model(model, {}, Precision.FP32), Scope(quick=quick), silent)
    assert asked == ([False] if quick else [True, False, False])


def test_a_large_model_is_not_checked_at_the_largest_size(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lower_model(model, {}, Precision.FP32).free_sizes == tuple({"N": n} for n in (1, 3, 17))
    monkeypatch.setattr("wpk.lowering.model.LARGE", 100)
    assert LARGE > 100
    assert lower_model(model, {}, Precision.FP32).free_sizes == tuple({"N": n} for n in (1, 3))


def test_constants_keep_what_rounding_takes() -> None:
    exact = np.array([1 / 3, 0.5])
    constant = rounded_constant("c", exact, np.float32)
    assert isinstance(constant, ExactConstant)
    assert constant.values.dtype == np.float32
    assert (exact_values(constant) == exact).all()
    moved = moved_constant("m", constant, lambda array: array[::-1])
    assert (exact_values(moved) == exact[::-1]).all()
    assert (moved.values == constant.values[::-1]).all()
    plain = rounded_constant("p", exact[1:], np.float32)
    both = joined_constant("j", [plain, constant], 0)
    assert (exact_values(both) == [0.5, 1 / 3, 0.5]).all()
    assert not isinstance(joined_constant("j", [plain, plain], 0), ExactConstant)
    assert not isinstance(rounded_constant("c", exact[1:], np.float32), ExactConstant)
    given = rounded_constant("c", np.array([0.25]), np.float32, exact=exact[:1])
    assert given.values == np.float32(0.25)
    assert exact_values(given) == 1 / 3


def test_what_replaces_a_tensor_takes_its_name_where_nobody_else_reads_it() -> None:
    x = gs.Variable("x", np.float32, [2])
    old, result = gs.Variable("old", np.float32, [2]), gs.Variable("y", np.float32, [2])
    nodes = [gs.Node("Neg", "n", {}, [x], [old]), gs.Node("Abs", "a", {}, [old], [result])]
    graph = gs.Graph(nodes, [x], [result], opset=17)
    editor = GraphEditor(graph)
    new = editor.add("Sign", [x], like=old)
    editor.replace(old, new)
    assert [t.name for t in nodes[1].inputs] == ["old"]
    assert nodes[1].inputs[0].inputs[0].op == "Sign"
    other = editor.add("Floor", [x], like=old)
    editor.add("Ceil", [other], like=old)
    editor.replace(nodes[1].inputs[0], other)
    assert nodes[1].inputs[0] is other  # whom another node reads under its own name
