"""Feed-forward blocks as they are lowered, and whole plans of them, which are checked as any are, on the CPU."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.each_value import each_value
from support.networks.drawn_weights import parse_model

from wpk.commands.verification import verify
from wpk.dtypes import DType, Precision
from wpk.graph_passes import every_site
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model
from wpk.pipeline import optimize
from wpk.plan import Outcome
from wpk.plan.plan_file import read_plan
from wpk.problems import FeedForward, NormKind, Tensor
from wpk.target_features import TargetFeatures

JOINED = (every_site("fuse-feed-forwards"),)
H = '<ir_version: 9, opset_import: ["" : 20]>'
SWIN = f"""{H} g (float[2,37,48] a, float[2,37,48] x, float[48,48] p, float[48] q, float[48] g, float[48] s,
    float[48,192] u, float[192] b, float[192,48] v, float[48] c, float[48] k, float[48,144] w)
    => (float[2,37,48] y, float[2,37,144] z) {{
    m = MatMul(a, p)  n = Add(m, q)  r = Add(n, x)  l = LayerNormalization(r, g, s)
    h = MatMul(l, u)  i = Add(h, b)  e = Gelu(i)  o = MatMul(e, v)  t = Add(o, c)  y = Add(r, t)
    f = LayerNormalization(y, k)  z = MatMul(f, w) }}"""
"""A block between the projection of one attention and the query of the next."""

CONVNEXT = f"""{H} g (float[N,40,9,8] x, float[40,1,7,7] d, float[40] f, float[40] g, float[40] s,
    float[40,160] u, float[160] b, float[160,40] v, float[40] c, float[40,1,1] l)
    => (float[N,40,9,8] y) {{
    a = Conv<group = 40, pads = [3, 3, 3, 3]>(x, d, f)  t = Transpose<perm = [0, 2, 3, 1]>(a)
    n = LayerNormalization(t, g, s)  h = MatMul(n, u)  i = Add(h, b)  e = Gelu(i)
    o = MatMul(e, v)  p = Add(o, c)  q = Transpose<perm = [0, 3, 1, 2]>(p)  r = Mul(q, l)  y = Add(x, r) }}"""
"""A depthwise convolution, then both products of its pixels, and a layer scale."""

GATED = f"""{H} g (float[2,37,32] a, float[32,40] p, float[40,72] u, float[72,24] v) => (float[2,37,24] y) {{
    x = MatMul(a, p)  q = Mul(x, x)  m = ReduceMean<keepdims = 1>(q, axes)  s = Add(m, epsilon)  r = Sqrt(s)  n = Div(x, r)
    h = MatMul(n, u)  e = Tanh(h)  y = MatMul(e, v) }}""".replace(
    "(float[2,37,24] y)", "(float[2,37,24] y) <int64[1] axes = {-1}, float epsilon = {1e-5}>"
)
"""An RMS norm, no bias, and another width behind."""

MODELS = {
    "Swin": (SWIN, "p q g s u b v c k w"),
    "ConvNeXt": (CONVNEXT, "d f g s u b v c l"),
    "RMS norm": (GATED, "p u v"),
}


def write(name: str, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(parse_model(*MODELS[name]), path)
    return path


def lowered(path: Path) -> LoweredModel:
    return lower_model(
        path, {}, Precision.FP16, changed=JOINED, features=TargetFeatures(warpgroups=True)
    )


def block(model: LoweredModel) -> FeedForward:
    found = [each.problem for each in model.program.operators]
    (problem,) = [each for each in found if isinstance(each, FeedForward)]
    return problem


def test_a_block_of_swin_normalises_adds_and_reads_its_rows_once(tmp_path: Path) -> None:
    problem = block(lowered(write("Swin", tmp_path)))
    assert (problem.m.value, problem.k, problem.hidden_size, problem.n) == (74, 48, 192, 48)
    assert problem.norm is not None
    assert problem.norm.kind is NormKind.LAYER
    assert problem.norm.sums == Tensor(DType.FP32, (0, 1), constant=True)
    assert sorted(each.strides for each in problem.epilogue.operands) == [(0, 1), (48, 1)]
    assert problem.x.strides == (48, 1)
    assert [each.strides for each in problem.hidden.operands] == [(0, 1)]


def test_a_block_of_convnext_has_pixels_and_a_free_batch(tmp_path: Path) -> None:
    problem = block(lowered(write("ConvNeXt", tmp_path)))
    assert problem.m.free == "N"
    assert problem.m.factor == 72
    assert (problem.k, problem.hidden_size, problem.n) == (40, 160, 40)


def test_another_width_and_norm(tmp_path: Path) -> None:
    problem = block(lowered(write("RMS norm", tmp_path)))
    assert (problem.k, problem.hidden_size, problem.n) == (40, 72, 24)
    assert problem.norm is not None
    assert (problem.norm.kind, problem.norm.sums) == (NormKind.RMS, None)


def test_sums_are_of_the_weights_as_they_lie(tmp_path: Path) -> None:
    model = lowered(write("Swin", tmp_path))
    (operator,) = [o for o in model.program.operators if isinstance(o.problem, FeedForward)]
    constants = model.program.constants
    up, sums = (constants[operator.inputs[place]] for place in (1, 4))
    assert up.shape == (192, 48)
    np.testing.assert_array_equal(sums, up.astype(np.float64).sum(axis=1).astype(np.float32))


@pytest.mark.usefixtures("one_finalist")
@pytest.mark.parametrize(("name", "precision"), each_value(MODELS, ["fp16", "bf16"]))
def test_a_plan_with_joined_products_agrees_with_the_model(
    name: str, precision: str, tmp_path: Path
) -> None:
    model, plan = write(name, tmp_path), tmp_path / "model.plan"
    optimize(model, plan, target="h200", precision=precision, changed_sites=JOINED)
    written = read_plan(plan).plan
    makers = [step.candidate.maker.name for step in written.steps]
    assert makers.count("feed_forward_wgmma") == 1
    assert {check.outcome for check in written.checks} == {Outcome.OK}
    assert verify(plan, model, device="cpu", check="quick").passed, "which takes the same form"


def test_usually_both_products_are_operators(tmp_path: Path) -> None:
    model = lower_model(
        write("Swin", tmp_path), {}, Precision.FP16, features=TargetFeatures(warpgroups=True)
    )
    assert not any(isinstance(o.problem, FeedForward) for o in model.program.operators)
    assert "fuse-feed-forwards" in {site.pass_name for site in model.sites}


@pytest.mark.parametrize(
    ("precision", "warpgroups"), [(Precision.FP16, False), (Precision.FP32, True)]
)
def test_where_no_kernel_computes_a_block_there_is_no_choice(
    precision: Precision, warpgroups: bool, tmp_path: Path
) -> None:
    model = lower_model(
        write("Swin", tmp_path), {}, precision, features=TargetFeatures(warpgroups=warpgroups)
    )
    assert "fuse-feed-forwards" not in {site.pass_name for site in model.sites}
