"""Feature maps lie channels last between operators; transposes live inside bodies or nowhere."""

import numpy as np
import onnx_graphsurgeon as gs
import pytest

from wpk.graph_passes import called
from wpk.graph_passes.core import GraphPass, PassResult
from wpk.graph_passes.fusion.fuse_operators import FuseOperators
from wpk.graph_passes.layout.channels_last import ChannelsLast
from wpk.graph_passes.movement.chains.shortest_views import fold_views

H = '<ir_version: 8, opset_import: ["" : 20]>'


class FuseAndLayOut(GraphPass):
    """Both passes as one, so that one proof covers them."""

    name = "fuse-and-lay-out"

    def apply(self, graph: gs.Graph) -> PassResult:
        result = FuseOperators(clusters=False)(graph)
        laid_out = ChannelsLast()(graph)
        return PassResult(
            result.rewritten + laid_out.rewritten, [*result.refusals, *laid_out.refusals]
        )


def kinds(proof):
    """Return the operators without their numbers."""
    return [op.rsplit("_", 1)[0] if "_" in op else op for op in proof.ops]


def body(proof, index):
    """Return the operators inside the function that node ``index`` calls."""
    return [node.op for node in called(proof.graph, proof.graph.nodes[index]).nodes]


def test_the_first_convolution_reads_the_models_order_and_the_last_writes_it(prove):
    proof = prove(
        f"""{H} g (float[N, 3, 8, 8] x, float[4, 3, 3, 3] w, float[4, 4, 3, 3] v)
        => (float[N, 4, 4, 4] y) {{ a = Conv(x, w)  b = Relu(a)  y = Conv(b, v) }}""",
        FuseAndLayOut(),
        constants="w v",
        rewritten=3,
        batches=(1, 3),
    )
    assert kinds(proof) == ["conv_relu", "conv"]
    assert body(proof, 0) == ["Conv", "Relu", "Transpose"]
    assert body(proof, 1) == ["Transpose", "Conv"]
    assert proof.graph.nodes[0].outputs[0].shape == ["N", 6, 6, 4]


def test_a_residual_block_has_no_transposes(prove):
    proof = prove(
        f"""{H} g (float[N, 4, 8, 8] x, float[4, 4, 1, 1] w, float[4, 4, 3, 3] v)
        => (float[N, 4] y) {{
        a = Conv(x, w)  r = Relu(a)  b = Conv<pads = [1, 1, 1, 1]>(r, v)  s = Add(b, r)
        t = Relu(s)  p = GlobalAveragePool(t)  y = Flatten(p) }}""",
        FuseAndLayOut(),
        constants="w v",
        rewritten=5,
        batches=(1, 2),
    )
    assert kinds(proof) == ["conv_relu", "conv_add_relu", "globalaveragepool", "Flatten"]
    assert body(proof, 1) == ["Transpose", "Conv", "Add", "Relu", "Transpose"]


def test_squeeze_and_excite_stays_channels_last(prove):
    proof = prove(
        f"""{H} g (float[N, 8, 6, 6] x, float[8, 1, 3, 3] d, float[2, 8, 1, 1] w,
        float[8, 2, 1, 1] v, float[4, 8, 1, 1] u) => (float[N, 4, 4, 4] y) {{
        a = Conv<group = 8>(x, d)  p = GlobalAveragePool(a)  q = Conv(p, w)  r = Relu(q)
        s = Conv(r, v)  t = HardSigmoid(s)  m = Mul(a, t)  y = Conv(m, u) }}""",
        FuseAndLayOut(),
        constants="d w v u",
        rewritten=11,
        batches=(1, 2),
    )
    assert "Transpose" not in proof.ops
    assert kinds(proof) == [
        "conv", "globalaveragepool", "conv_relu", "conv_hardsigmoid", "mul", "conv"
    ]  # fmt: skip


def test_halves_of_channels_that_are_added_stay_channels_last(prove):
    """Split attention (ResNeSt, arXiv 2004.08955): a convolution's channels are two images, weighed and added."""
    proof = prove(
        f"""{H} g (float[2, 8, 6, 6] x, float[8, 4, 3, 3] w, float[4, 4, 1, 1] v,
        float[1, 2, 4, 1, 1] k) => (float[2, 4, 4, 4] y)
        <int64[5] halves = {{2, 2, 4, 4, 4}}, int64[1] one = {{1}}> {{
        a = Conv<group = 2>(x, w)  b = Reshape(a, halves)  c = Mul(b, k)
        s = ReduceSum<keepdims = 0>(c, one)  y = Conv(s, v) }}""",
        FuseAndLayOut(),
        constants="w v k",
        rewritten=5,
    )
    assert kinds(proof) == ["conv", "mul_reducesum", "conv"]
    assert body(proof, 0) == ["Conv", "Transpose"]
    assert body(proof, 1) == ["Transpose", "Reshape", "Mul", "ReduceSum", "Transpose"]


MOVES = {
    "concat": "m = Concat<axis = 1>(a, a)",
    "concat with the input": "m = Concat<axis = 1>(a, x)",
    "concat with a constant": "m = Concat<axis = -3>(a, k)",
    "split": "m, n = Split<axis = 1, num_outputs = 2>(a)",
    "slice": "m = Slice(a, one, three, one, one)",
    "slice without axes": "m = Slice(a, zeros, ends)",
    "slice of 32 bits": "m = Slice(a, one32, three32, one32)",
    "pad": "m = Pad(a, pads)",
    "pad with axes": "m = Pad(a, pad2, fill, lastaxes)",
    "resize by scales": 'm = Resize<mode = "nearest">(a, none, scales)',
    "resize to sizes": 'm = Resize<mode = "linear">(a, none, none, sizes)',
}


@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES.keys())
def test_data_movements_get_their_axes_renamed(prove, move):
    move = move.replace("none, none, sizes", ", , sizes").replace("none, scales", ", scales")
    proof = prove(
        f"""{H} g (float[2, 4, 8, 6] x, float[4, 4, 1, 1] w, float[2, 4, 8, 6] k)
        => (float[a, b, c, d] y) <int64[1] one = {{1}}, int64[1] three = {{3}},
        int32[1] one32 = {{1}}, int32[1] three32 = {{3}},
        int64[4] zeros = {{0, 1, 2, 3}}, int64[4] ends = {{2, 4, 7, 6}},
        int64[8] pads = {{0, 1, 2, 3, 0, 4, 5, 6}}, int64[4] pad2 = {{1, 2, 3, 4}},
        float fill = {{0.5}}, int64[2] lastaxes = {{-1, 1}},
        float[4] scales = {{1, 1, 2, 3}}, int64[4] sizes = {{2, 4, 5, 9}}> {{
        a = Conv(x, w)  {move}  y = MaxPool<kernel_shape = [2, 2]>(m) }}""",
        FuseAndLayOut(),
        constants="w k",
        rewritten=5 if "n = Split" in move else 4,
    )
    transposes = 1 if "a, x" in move else 0
    assert proof.ops.count("Transpose") == transposes


def test_a_channel_shuffle_moves_channels_only(prove):
    proof = prove(
        f"""{H} g (float[N, 4, 5, 5] x, float[6, 4, 1, 1] w, float[6, 3, 1, 1] v)
        => (float[N, 6, 5, 5] y) <int64[5] split = {{0, 2, 3, 5, 5}}, int64[4] join = {{0, 6, 5, 5}}>
        {{ a = Conv(x, w)  s = Reshape(a, split)  t = Transpose<perm = [0, 2, 1, 3, 4]>(s)
        j = Reshape(t, join)  y = Conv<group = 2>(j, v) }}""",
        FuseAndLayOut(),
        constants="w v",
        rewritten=4,
        batches=(1, 2),
    )
    (shuffle,) = [node for node in proof.graph.nodes if node.op == "Transpose"]
    assert shuffle.inputs[0].shape[-2:] == [2, 3]
    assert shuffle.outputs[0].shape[-2:] == [3, 2]


def test_a_sequence_of_pixels_becomes_an_image_channels_last(prove):
    # As decoders of segmentation write it: a product for each pixel, resampled, and beside others.
    proof = prove(
        f"""{H} g (float[N, 15, 5] x, float[5, 4] w, float[N, 4, 6, 10] z, float[7, 8, 1, 1] v)
        => (float[N, 7, 6, 10] y) <int64[4] image = {{0, 4, 3, 5}}, float[4] scales = {{1, 1, 2, 2}}> {{
        a = MatMul(x, w)  t = Transpose<perm = [0, 2, 1]>(a)  i = Reshape(t, image)
        r = Resize<mode = "linear">(i, , scales)  c = Concat<axis = 1>(r, z)  y = Conv(c, v) }}""",
        FuseAndLayOut(),
        constants="w v",
        rewritten=5,
        batches=(1, 2),
    )
    assert proof.node("Resize").outputs[0].shape[1:] == [6, 10, 4]
    assert proof.ops.count("Transpose") <= 1  # of what the model gives


def test_an_image_becomes_a_sequence_of_pixels_channels_last(prove):
    proof = prove(
        f"""{H} g (float[2, 3, 4, 5] x, float[4, 3, 1, 1] w, float[6, 4, 3] v) => (float[2, 6, 18] y)
        <int64[3] sequence = {{0, 0, 20}}> {{
        a = Conv(x, w)  s = Reshape(a, sequence)  y = Conv(s, v) }}""",
        FuseAndLayOut(),
        constants="w v",
        rewritten=4,
    )
    assert proof.ops.count("Transpose") == 0
    assert [n.outputs[0].shape for n in proof.graph.nodes if n.op == "Reshape"] == [[2, 20, 4]]


def test_a_reshape_that_joins_channels_and_pixels_keeps_its_order(load):
    text = f"""{H} g (float[2, 4, 3, 5] x, float[4, 4, 1, 1] w, float[6, 2, 3] v)
        => (float[2, 6, 28] y) <int64[3] sequence = {{0, 2, 30}}> {{
        a = Conv(x, w)  s = Reshape(a, sequence)  y = Conv(s, v) }}"""
    graph = load(text, "w v")
    FuseOperators()(graph)
    reasons = [refusal.reason for refusal in ChannelsLast()(graph).refusals]
    assert reasons == ["Reshape changes more than channels"]


def test_a_reader_of_rows_gets_one_transpose(prove):
    # The map is read by a pool (channels last) and flattened for a product (channels first).
    proof = prove(
        f"""{H} g (float[2, 4, 4, 4] x, float[4, 4, 1, 1] w, float[64, 5] v)
        => (float[2, 5] y, float[2, 4, 3, 3] z) {{
        a = Conv(x, w)  f = Flatten(a)  y = MatMul(f, v)
        z = MaxPool<kernel_shape = [2, 2]>(a) }}""",
        FuseAndLayOut(),
        constants="w v",
        rewritten=4,
    )
    assert proof.ops.count("Transpose") <= 1


def test_a_sequence_convolution_is_laid_out_too(prove):
    proof = prove(
        f"""{H} g (float[N, 3, 9] x, float[4, 3, 3] w, float[4, 4, 3] v) => (float[N, 4, 5] y) {{
        a = Conv(x, w)  b = Relu(a)  y = Conv(b, v) }}""",
        FuseAndLayOut(),
        constants="w v",
        rewritten=3,
        batches=(1, 2),
    )
    assert proof.graph.nodes[0].outputs[0].shape == ["N", 7, 4]


def test_lays_out_bare_nodes_when_fusion_was_skipped(prove):
    proof = prove(
        f"""{H} g (float[2, 3, 8, 8] x, float[4, 3, 3, 3] w, float[4, 4, 3, 3] v)
        => (float[2, 4, 4, 4] y) {{ a = Conv(x, w)  b = Relu(a)  y = Conv(b, v) }}""",
        ChannelsLast(),
        constants="w v",
        rewritten=5,
    )
    assert kinds(proof) == ["conv", "relu", "conv"]


def test_matrices_are_left_alone(prove):
    proof = prove(
        f"""{H} g (float[2, 3, 4, 5] x, float[5, 6] w) => (float[2, 3, 4, 6] y) {{
        y = MatMul(x, w) }}""",
        FuseAndLayOut(),
        constants="w",
        rewritten=1,
    )
    assert body(proof, 0) == ["MatMul"]


def test_products_of_pixels_keep_their_channels_last(prove):
    """A block of ConvNeXt: what moves the channels last and back is no reason to move them elsewhere."""
    proof = prove(
        f"""{H} g (float[N, 4, 5, 6] x, float[4, 1, 3, 3] w, float[4] s, float[4, 8] u, float[8, 4] v)
        => (float[N, 4, 5, 6] y) {{
        r = Conv<group = 4, pads = [1, 1, 1, 1]>(x, w)
        a = Conv<group = 4, pads = [1, 1, 1, 1]>(r, w)
        p = Transpose<perm = [0, 2, 3, 1]>(a)  n = LayerNormalization<axis = -1>(p, s)
        m = MatMul(n, u)  g = Relu(m)  k = MatMul(g, v)  q = Transpose<perm = [0, 3, 1, 2]>(k)
        b = Add(q, r)  y = Conv<group = 4, pads = [1, 1, 1, 1]>(b, w) }}""",
        FuseAndLayOut(),
        constants="w s u v",
        rewritten=10,
        batches=(1, 2),
    )
    shapes = {node.name.rsplit("_", 1)[0]: node.outputs[0].shape for node in proof.graph.nodes}
    assert {tuple(shape) for shape in shapes.values()} == {
        ("N", 5, 6, 4),
        ("N", 5, 6, 8),
        ("N", 4, 5, 6),
    }
    assert not [op for op in proof.ops if op == "Transpose"]
    products = [n for n in proof.graph.nodes if "matmul" in n.op.lower()]
    assert [n.outputs[0].shape for n in products] == [["N", 5, 6, 8], ["N", 5, 6, 4]]


def test_keys_that_a_product_transposes_are_no_feature_map(prove):
    proof = prove(
        f"""{H} g (float[2, 3, 4, 5] x, float[5, 6] w, float[2, 4, 7, 6] q)
        => (float[2, 4, 7, 3] y) {{
        k = MatMul(x, w)  t = Transpose<perm = [0, 2, 3, 1]>(k)  y = MatMul(q, t) }}""",
        FuseAndLayOut(),
        constants="w",
        rewritten=2,
    )
    assert body(proof, 0) == ["MatMul"]


CONV = "float[1, 4, 6, 6] x, float[4, 4, 1, 1] w"
REFUSED = {
    "'a' is a graph output and keeps its order": (
        f"{CONV}) => (float[1, 4, 6, 6] a, float[1, 4, 6, 6] y",
        "a = Conv(x, w)  y = Conv(a, w)",
    ),
    "'begin' of Slice is not constant": (
        f"{CONV}, int64[1] begin, int64[1] end) => (float[1, b, 6, 6] y",
        "a = Conv(x, w)  s = Slice(a, begin, end)  y = MaxPool<kernel_shape = [2, 2]>(s)",
    ),
    "Gather has no channels-last form": (
        f"{CONV}, int64[4] i) => (float[1, 4, 5, 5] y",
        "a = Conv(x, w)  g = Gather<axis = 1>(a, i)  y = MaxPool<kernel_shape = [2, 2]>(g)",
    ),
    "Reshape changes more than channels": (
        f"{CONV}, int64[4] sizes) => (float[a, b, c, d] y",
        "a = Conv(x, w)  r = Reshape(a, sizes)  y = MaxPool<kernel_shape = [1, 1]>(r)",
    ),
    "Resize crops to 'roi'": (
        f"{CONV}, float[8] roi, int64[4] s) => (float[1, 4, 5, 5] y",
        (
            'a = Conv(x, w)  r = Resize<coordinate_transformation_mode = "tf_crop_and_resize">'
            "(a, roi, , s)  y = MaxPool<kernel_shape = [2, 2]>(r)"
        ),
    ),
    "Conv works on rank 5; only 3 and 4 are laid out": (
        "float[1, 2, 3, 3, 3] x, float[2, 2, 1, 1, 1] w) => (float[1, 2, 3, 3, 3] y",
        "y = Conv(x, w)",
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_says_why_a_value_keeps_its_order(load, reason):
    signature, nodes = REFUSED[reason]
    graph = load(f"{H} g ({signature}) {{ {nodes} }}", "w")
    for node in graph.nodes:
        if node.op == "Reshape":
            node.inputs = [node.inputs[0], gs.Constant("flat", np.array([1, 4, 4, 9]))]
            node.outputs[0].shape = [1, 4, 4, 9]
        if node.op == "Resize":
            node.inputs = [*node.inputs[:3], gs.Constant("same", np.array([1, 4, 6, 6]))]
    FuseOperators()(graph)
    assert reason in [refusal.reason for refusal in ChannelsLast()(graph).refusals]


@pytest.mark.parametrize(
    ("chain", "left"),
    [
        ("a = Transpose<perm = [0, 2, 3, 1]>(x)  y = Transpose<perm = [0, 3, 1, 2]>(a)", 1),
        ("a = Transpose<perm = [1, 0, 2, 3]>(x)  y = Transpose<perm = [0, 2, 3, 1]>(a)", 1),
        ("a = Reshape(x, flat)  b = Transpose<perm = [1, 0]>(a)  y = Reshape(b, four)", 1),
    ],
)
def test_chains_of_views_shorten(load, run_model, export, chain, left):
    text = f"""{H} g (float[2, 3, 4, 5] x) => (float[a, b, c, d] z)
        <int64[2] flat = {{2, 60}}, int64[4] four = {{3, 4, 5, 2}}> {{ {chain}  z = Relu(y) }}"""
    before, after = load(text), load(text)
    assert fold_views(after) == 1
    after.cleanup().toposort()
    views = [node for node in after.nodes if node.op != "Relu"]
    assert len(views) <= left
    feeds = {"x": np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)}
    (old,), (new,) = run_model(export(before), feeds), run_model(export(after), feeds)
    assert old.tolist() == new.tolist()


def test_attention_reads_the_channels_that_a_convolution_makes_in_rows(prove):
    text = f"""{H} g (float[2, 6, 3, 5] x, float[84, 6, 1, 1] w, float[4, 36, 1, 1] v) => (float[2, 4, 3, 5] y)
        <int64[4] narrow = {{2, 3, 8, 15}}, int64[4] wide = {{2, 3, 12, 15}}, int64[4] image = {{2, 36, 3, 5}},
        int64[3] parts = {{24, 24, 36}}> {{
        c = Conv(x, w)  cq, ck, cv = Split<axis = 1>(c, parts)
        q = Reshape(cq, narrow)  k = Reshape(ck, narrow)  z = Reshape(cv, wide)
        a = Transpose<perm = [0, 1, 3, 2]>(q)  s = MatMul(a, k)  p = Softmax(s)
        t = Transpose<perm = [0, 1, 3, 2]>(z)  m = MatMul(p, t)  u = Transpose<perm = [0, 1, 3, 2]>(m)
        o = Reshape(u, image)  y = Conv(o, v) }}"""
    proof = prove(text, FuseAndLayOut(), constants="w v", rewritten=8, terms=1 << 10)
    assert kinds(proof) == ["conv", "Split", "attention", "conv"]
    assert [tensor.shape[-1] for tensor in proof.node("Split").outputs] == [24, 24, 36]
