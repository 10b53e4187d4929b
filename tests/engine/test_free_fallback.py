"""Free dimensions and steps of ONNX Runtime in one plan: any size goes through both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.networks.fallback_models import text_model
from support.networks.right_outputs import right

import wpk
from wpk.engine import random_inputs
from wpk.errors import EngineError, UnsupportedError
from wpk.plan import Outcome, Plan
from wpk.plan.plan_file import read_plan

pytestmark = pytest.mark.usefixtures("one_cubin")

MODELS = {
    # A batch and a sequence go in, and a shape that nobody knows comes out.
    "nonzero": (
        "(float[n, s, 8] x) => (float[n, s, 8] y, int64[3, m] z) { r = Relu(x) z = NonZero(r) y = Exp(r) }",
        [("NonZero",)],
        ["z"],
    ),
    "unique": (
        (
            "(float[n, s, 8] x) => (float[n, s, 8] y, float[m] z) "
            "{ r = Relu(x) u = Round(r) z = Unique(u) y = Exp(r) }"
        ),
        [("Unique",)],
        ["z"],
    ),
    "a free batch alone": (
        "(float[n, 3, 8] x) => (float[n, 3, 8] y, int64[3, m] z) { r = Relu(x) z = NonZero(r) y = Exp(r) }",
        [("NonZero",)],
        ["z"],
    ),
    # What ONNX Runtime gives goes on to kernels, its free axes as one.
    "between kernels": (
        (
            "(float[n, s, 4, 4] x) => (float[n, s] y, float[n, s, 4, 4] z) "
            '{ r = Tanh(x) d = Einsum<equation = "nsij->ns">(r) y = Exp(d) z = Neg(r) }'
        ),
        [("Einsum",)],
        [],
    ),
    "along the sequence": (
        "(float[n, s, 8] x) => (float[n, s, 8] y) { r = Relu(x) t = Softmax<axis=1>(r) y = Exp(t) }",
        [("Softmax",)],
        [],
    ),
    "to a scalar": (
        "(float[n, s, 4] x) => (float y) { r = Relu(x) t = ReduceMean<keepdims=0>(r) y = Exp(t) }",
        [("ReduceMean",)],
        [],
    ),
    "in another order": (
        "(float[n, s, 4] x) => (float[s, n, 4] y) { r = Relu(x) t = Transpose<perm=[1,0,2]>(r) y = Exp(t) }",
        [("Transpose",)],
        [],
    ),
    "a constant that is repeated over the batch": (
        (
            "(float[n, 3] x) => (float[n, 3] y) <float[1, 3] c = {3, 0, 2}, int64[1] three = {3}, "
            "int64 first = {0}> { b = Shape<end=1>(x) t = Concat<axis=0>(b, three) e = Expand(c, t) "
            "s = CumSum(e, first) y = Mul(x, s) }"
        ),
        [("CumSum",)],
        [],
    ),
    # Twice the batch is no number, and a free axis behind a fixed one has no place in memory.
    "twice the batch": (
        "(float[n, 4] x) => (float[p, 4] y) { r = Relu(x) t = Concat<axis=0>(r, x) y = Exp(t) }",
        [("Concat", "Exp")],
        ["y"],
    ),
    "a free axis at the end": (
        "(float[n, s, 4] x) => (float[n, 4, s] y) { r = Relu(x) y = Transpose<perm=[0,2,1]>(r) }",
        [("Transpose",)],
        ["y"],
    ),
}
"""What each model is, what ONNX Runtime executes of it, and which outputs only a run gives a shape."""


def written(text: str, folder: Path, **options: Any) -> tuple[Path, Path]:
    model, plan = folder / "m.onnx", folder / "m.plan"
    onnx.save(text_model(f"g {text}"), model)
    wpk.optimize(model, plan, target="h200", search="static", **options)
    return model, plan


def handed(plan: Plan) -> list[tuple[str, ...]]:
    return [each.fallback.operators for each in plan.steps if each.fallback is not None]


@pytest.mark.parametrize(("text", "operators", "kept"), MODELS.values(), ids=MODELS.keys())
def test_every_size_goes_through(
    text: str, operators: list[tuple[str, ...]], kept: list[str], tmp_path: Path
) -> None:
    model, path = written(text, tmp_path, check="on")
    with wpk.load(path, device="cpu") as engine:
        plan = engine.plan
        assert handed(plan) == operators
        assert [each.name for each in plan.kept_outputs] == kept
        outcomes = [c.outcome for step in plan.steps for c in step.evidence.checks]
        assert outcomes == [Outcome.OK] * len(outcomes)
        assert {check.outcome for check in plan.checks} == {Outcome.OK}
        for first in (1, 2, 5):  # each dimension another size
            dims = {name: first + number for number, name in enumerate(plan.free)}
            inputs = random_inputs(plan, 3, dims)
            outputs, expected = engine.run(inputs), right(model, inputs)
            assert outputs.keys() == expected.keys()
            for name, array in expected.items():
                assert (outputs[name].shape, outputs[name].dtype) == (array.shape, array.dtype)
                # Numbers up to about 100, each after a handful of roundings.
                np.testing.assert_allclose(outputs[name], array, rtol=2e-6, atol=2e-6)


def test_without_fallback_it_is_refused_by_the_dimensions_name(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="Softmax along the free dimension 's'") as error:
        written(MODELS["along the sequence"][0], tmp_path, fallback="off")
    assert "let ONNX Runtime execute them: --fallback on" in error.value.fix
    assert not (tmp_path / "m.plan").exists()


def test_limits_hold_for_both(tmp_path: Path) -> None:
    shapes = {"x": [[1, 2, 8], [2, 3, 8], [4, 6, 8]]}
    model, path = written(MODELS["nonzero"][0], tmp_path, check="quick", shapes=shapes)
    plan = read_plan(path).plan
    assert (plan.free, plan.limits) == ({"n": 2, "s": 3}, {"n": (1, 4), "s": (2, 6)})
    with wpk.load(path, device="cpu") as engine:
        inputs = random_inputs(plan, 3, {"n": 4, "s": 6})
        np.testing.assert_array_equal(engine.run(inputs)["z"], right(model, inputs)["z"])
        with pytest.raises(
            EngineError, match="'s' has the size 7, the plan was written for 2 to 6"
        ):
            engine.run({"x": np.zeros((1, 7, 8), np.float32)})


def test_profiles_may_keep_different_outputs(tmp_path: Path) -> None:
    text, inputs = MODELS["twice the batch"][0], {"x": np.eye(3, 4, dtype=np.float32)}
    paths = []
    for name, options in {"free": {}, "two": {"shapes": {"x": (2, 4)}}}.items():
        (tmp_path / name).mkdir()
        model, path = written(text, tmp_path / name, check="off", **options)
        paths.append(path)
    assert [len(read_plan(path).plan.kept_outputs) for path in paths] == [1, 0]
    with wpk.load_profiles(paths, device="cpu") as profiles:
        for given in (inputs, {"x": inputs["x"][:2]}):
            y = profiles.run(given)["y"]
            np.testing.assert_allclose(y, right(model, given)["y"], rtol=2e-6)
        assert len(profiles.engine_for({"x": inputs["x"][:2]}).plan.kept_outputs) == 0


def test_a_free_axis_behind_a_fixed_one_needs_no_fallback(tmp_path: Path) -> None:
    _, path = written("(float[4, n] x) => (float[4, n] y) { y = Relu(x) }", tmp_path)
    x = np.random.default_rng(0).standard_normal((4, 5)).astype(np.float32)
    with wpk.load(path, device="cpu") as engine:
        assert all(step.fallback is None for step in engine.plan.steps)
        np.testing.assert_array_equal(engine.run({"x": x})["y"], np.maximum(x, 0))
