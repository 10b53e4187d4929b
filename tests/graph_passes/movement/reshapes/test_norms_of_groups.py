"""Groups of channels that are normalised keep their axes, and become one operator with what follows."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from support.networks.drawn_weights import parse_model

import wpk
from wpk.graph_passes.movement.reshapes.norms_of_groups import NormsOfGroups

H = '<ir_version: 8, opset_import: ["" : 17]>'


def _text(groups: int, rows: str = "", body: str = "", more: str = "", back: str = "") -> str:
    """A group norm as torch writes it, of 6 channels of 5 x 7 places."""
    each = "{" + ", ".join(f"{0.5 + index}" for index in range(groups)) + "}"
    rows = rows or f"0, {groups}, -1"
    back = back or "-1, 6, 5, 7"
    return f"""{H} g (float[n, 6, 5, 7] x) => (float[n, 6, 5, 7] y{more})
    <int64[3] rows = {{{rows}}}, int64[4] back = {{{back}}}, float[{groups}] s = {each}, float[{groups}] b = {each}> {{
    r = Reshape(x, rows)  i = InstanceNormalization<epsilon = 0.01>(r, s, b)  {body}  y = Reshape(i, back) }}"""


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_groups_have_axes(prove, groups):
    proof = prove(_text(groups), NormsOfGroups(), batches=(1, 3))
    assert proof.ops == ["Reshape", "InstanceNormalization", "Reshape"]
    norm = proof.node("InstanceNormalization")
    assert list(norm.outputs[0].shape)[1:] == [groups, 6 // groups, 5, 7]
    assert norm.attrs["epsilon"] == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_text(4, rows="-1, 4, 105"), "are no groups of 6 channels"),
        (_text(2, more=", float[n, 2, 105] z", body="z = Neg(i)"), "has 2 readers"),
        (
            _text(2).replace("[n, 6, 5, 7]", "[n, 6, 5, w]").replace("5, 7}", "5, -1}"),
            "is not known",
        ),
    ],
    ids=["rows across images", "another reader", "a free width"],
)
def test_refuses_in_words(load, text, reason):
    (refusal,) = NormsOfGroups()(load(text)).refusals
    assert reason in refusal.reason


def test_other_shapes_behind_it_stay(load):
    text = _text(2, back="-1, 6, 7, 5").replace("(float[n, 6, 5, 7] y)", "(float[n, 6, 7, 5] y)")
    assert NormsOfGroups()(load(text)).rewritten == 0


NETWORK = f"""{H} g (float[BATCH, 3, 9, 11] x, float[12, 3, 3, 3] w, float[12] c, float[12, 1, 1] s, float[12, 1, 1] b,
    float[12, 12, 1, 1] v) => (float[BATCH, 12, 9, 11] y)
    <int64[3] rows = {{0, GROUPS, -1}}, int64[4] back = {{BATCH, 12, 9, 11}}, float[GROUPS] ones = {{ONES}},
     float[GROUPS] none = {{NONE}}> {{
    a = Conv<pads = [1, 1, 1, 1]>(x, w, c)
    r = Reshape(a, rows)  i = InstanceNormalization(r, ones, none)  k = Reshape(i, back)
    m = Mul(k, s)  d = Add(m, b)  t = Sigmoid(d)  u = Mul(d, t)  e = Add(u, a)  y = Conv(e, v) }}"""


@pytest.mark.parametrize(
    ("groups", "batch", "precision"),
    [pytest.param(4, 2, "fp32", marks=pytest.mark.slow), (1, 3, "fp16")],
)
def test_a_norm_is_one_operator_with_what_follows(
    groups: int, batch: int, precision: str, tmp_path: Path, one_cubin: None
) -> None:
    """A convolution, its group norm with scale, shift, SiLU and a shortcut, and a convolution: three operators."""
    text = NETWORK.replace("BATCH", str(batch)).replace("GROUPS", str(groups))
    text = text.replace("ONES", ", ".join(["1"] * groups)).replace(
        "NONE", ", ".join(["0"] * groups)
    )
    model = parse_model(text, "w c s b v")
    onnx.save(model, tmp_path / "model.onnx")
    plan = tmp_path / "model.plan"
    made = wpk.optimize(
        tmp_path / "model.onnx", plan, target="h200", precision=precision, search="static"
    ).plan
    assert len(made.steps) == 3
    words = made.steps[1].operator.problem.words()
    assert words.startswith(
        f"layer norm, {batch * groups} rows of 99\N{MULTIPLICATION SIGN}{12 // groups}"
    )
    x = np.random.default_rng(5).standard_normal((batch, 3, 9, 11)).astype(np.float32)
    with wpk.load(plan, device="cpu") as engine:
        y = engine.run({"x": x})["y"]
    (right,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    allowed = 2e-5 if precision == "fp32" else 1e-2
    assert np.abs(y - right).max() <= allowed * np.sqrt(np.mean(np.square(right)))
