"""Windows of images: what treats each row alike computes in the image's order, and attention alone reads windows."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from support.networks import windows

import wpk
from wpk.graph_passes import called
from wpk.graph_passes.clean.elimination.identity_elimination import IdentityElimination
from wpk.graph_passes.core.manager import run_passes
from wpk.graph_passes.fold.constant_folding import ConstantFolding
from wpk.graph_passes.fusion.fuse_operators import FuseOperators
from wpk.graph_passes.fusion.split import SplitBeforeViews
from wpk.graph_passes.movement.windows.moved_rows import MovedRows
from wpk.graph_passes.movement.windows.windows_in_attention import WindowsInAttention
from wpk.problems import Attention, Windows, windows_of

pytestmark = pytest.mark.usefixtures("warm_without_cubins")

SWIN = (
    {"shift": 0},
    {"shift": 1},
    {"shift": 0, "images": 2},
    {"shift": 1, "images": 2, "mask": False},
    {"shift": 1, "by_head": True},
    {"shift": 1, "by_part": True},
)
NETWORKS = [*(windows.swin(**each) for each in SWIN), windows.maxvit()]


def plain(graph: gs.Graph) -> gs.Graph:
    """The graph as the pass sees it: sizes are constants, a roll is one movement."""
    run_passes(graph, [ConstantFolding(), IdentityElimination(), MovedRows()])
    return graph


def _constants(text: str) -> str:
    extra = "".join(
        f" {name}" for name in ("wm", "wc") if f" {name})" in text or f" {name}," in text
    )
    return windows.WEIGHTS + extra


@pytest.mark.parametrize("text", NETWORKS)
def test_attention_alone_reads_windows(text: str, load: Any, export: Any, run_model: Any) -> None:
    names = _constants(text)
    before, graph = load(text, names), plain(load(text, names))
    kept = {t.name for n in graph.nodes for t in n.outputs}
    assert WindowsInAttention()(graph).rewritten == 1
    assert WindowsInAttention()(graph).rewritten == 0
    shape = graph.inputs[0].shape
    feeds = {"x": np.random.default_rng(0).normal(size=shape).astype(np.float32)}
    for old, new in zip(
        run_model(export(before), feeds), run_model(export(graph), feeds), strict=True
    ):
        np.testing.assert_allclose(old, new, rtol=0, atol=2e-5)
    both = sorted(kept & {t.name for n in graph.nodes for t in n.outputs})
    for old, new in zip(
        _values(export(before), both, feeds, run_model),
        _values(export(graph), both, feeds, run_model),
        strict=True,
    ):
        np.testing.assert_allclose(old, new, rtol=0, atol=2e-5)  # a name stands for one value
    run_passes(graph, [SplitBeforeViews()])
    FuseOperators()(graph)
    ops = [node.op.rsplit("_", 1)[0] for node in graph.nodes]
    assert "transpose" not in ops
    attentions = [called(graph, node) for node in graph.nodes if node.op.startswith("attention")]
    for body in attentions:
        assert [n.op for n in body.nodes].count("Gather") == 4
    assert not any(node.op == "Gather" for node in graph.nodes)


def _values(
    model: onnx.ModelProto, names: list[str], feeds: Any, run_model: Any
) -> list[np.ndarray]:
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return run_model(model, feeds)


@pytest.mark.parametrize(
    ("text", "precision"),
    [(NETWORKS[1], "fp16"), (NETWORKS[4], "fp32"), (windows.maxvit(), "fp32")],
)
def test_a_model_of_windows_runs_without_copies(text: str, precision: str, tmp_path: Path) -> None:
    model, plan = tmp_path / "model.onnx", tmp_path / "model.plan"
    onnx.save(windows.model(text), model)
    wpk.optimize(model, plan, target="h100", precision=precision, search="static")
    problems = [step.operator.problem for step in wpk.load(plan, device="cpu").plan.steps]
    found = [each for each in problems if isinstance(each, Attention)]
    assert found
    assert all(each.windows is not None for each in found)


def test_windows_are_found_from_their_places() -> None:
    for each in (
        Windows(14, 21, 7, 7, shift=(3, 3)),
        Windows(8, 8, 4, 2, across=True),
        Windows(6, 9, 3, 3, across=True, shift=(1, 2)),
    ):
        places = each.places()
        assert sorted(places) == list(range(each.height * each.width))
        found = windows_of(np.concatenate([places, places + places.size]), each.tokens)
        assert found == each
    assert windows_of(np.random.default_rng(0).permutation(96), 6) is None


def test_an_order_that_something_else_sees_stays(load: Any) -> None:
    seen = "z = Reshape(o, s2)  q = Sub(x, r)  y = Add(q, z)"
    for text, regions in (
        (
            windows.swin().replace("y = Add(x, r)", seen),
            0,
        ),  # windows are added to the image as they lie
        (windows.swin().replace("fw = Softmax(fl2)", "fw = Softmax<axis = -2>(fl2)"), 0),
        (
            windows.swin().replace("n = LayerNormalization(x, wg, wb)", "n = Softmax<axis = 1>(x)"),
            1,
        ),
    ):
        graph = plain(load(text, windows.WEIGHTS))
        assert WindowsInAttention()(graph).rewritten == regions


_OTHER_ROWS = """<ir_version: 8, opset_import: ["" : 17]> g (float[1, 8, 4] x) => (float[1, 16, 2] y)
    <int64[8] rows = {0, 1, 4, 5, 2, 3, 6, 7}, int64[4] parts = {2, 4, 2, 2}, int64[3] wide = {1, 16, 2},
     int64[16] places = {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}> {
    a = Relu(x)  b = Gather<axis = 1>(a, rows)  c = Reshape(b, parts)  q = Transpose<perm = [0, 2, 1, 3]>(c)
    d = Neg(x)  e = Gather<axis = 1>(d, rows)  f = Reshape(e, parts)  k = Transpose<perm = [0, 2, 3, 1]>(f)
    h = Abs(x)  i = Gather<axis = 1>(h, rows)  j = Reshape(i, parts)  v = Transpose<perm = [0, 2, 1, 3]>(j)
    s = MatMul(q, k)  p = Softmax(s)  o = MatMul(p, v)  r = Reshape(o, wide)  m = Gather<axis = 1>(r, places)
    y = Relu(m) }"""


def test_a_gather_of_other_rows_stays_behind_attention(
    load: Any, export: Any, run_model: Any
) -> None:
    before, graph = load(_OTHER_ROWS), load(_OTHER_ROWS)
    FuseOperators()(graph)
    assert any(node.op.startswith("attention") for node in graph.nodes)
    assert any(node.op == "Gather" for node in graph.nodes)
    feeds = {"x": np.random.default_rng(0).normal(size=(1, 8, 4)).astype(np.float32)}
    (old,), (new,) = run_model(export(before), feeds), run_model(export(graph), feeds)
    np.testing.assert_allclose(old, new, rtol=0, atol=2e-6)
