"""Convolutions read and write channels where they lie: no shuffle, split or copy is left."""

import numpy as np
import pytest

from wpk.dtypes import DType
from wpk.graph_passes import run_passes
from wpk.graph_passes.core.query import floats
from wpk.graph_passes.products import channel_orders
from wpk.graph_passes.products.channel_orders import ChannelOrders
from wpk.graph_passes.products.channel_places import Channels, channels_of

H = '<ir_version: 8, opset_import: ["" : 18]>'
GIVEN = """float[N, 6, 5, 3] x, float[3, 6, 1, 1] u, float[3, 6, 1, 1] v, float[3] b, float[3, 3, 1, 1] w,
    float[3, 1, 3, 3] d, float[6, 1, 3, 3] e, float[4, 6, 1, 1] f, float[3, 3, 3, 3] o, float[6, 3, 1, 1] g"""
WEIGHTS = "u v b w d e f o g"
DEPTHWISE = "group = 3, pads = [1, 1, 1, 1]"
ALL = "group = 6, pads = [1, 1, 1, 1]"
FIRST = (
    "p0 = Conv(x, u, b)  p = Relu(p0)  q0 = Conv(x, v)  q = Relu(q0)  c = Concat<axis = 1>(p, q)"
)
SHUFFLE = "s = Reshape(c, apart)  t = Transpose<perm = [0, 2, 1, 3, 4]>(s)  r = Reshape(t, whole)"
HALVES = "k, m = Split<axis = 1, num_outputs = 2>(r)"
BRANCH = f"m1 = Conv(m, w, b)  m2 = Conv<{DEPTHWISE}>(m1, d, b)  m3 = Conv(m2, w, b)  n = Relu(m3)"
JOINED = "c2 = Concat<axis = 1>(k, n)"
AGAIN = """s2 = Reshape(c2, apart)  t2 = Transpose<perm = [0, 2, 1, 3, 4]>(s2)  r2 = Reshape(t2, whole)"""
LAST = "y = Conv(r2, f)"
NETWORK = f"{FIRST}  {SHUFFLE}  {HALVES}  {BRANCH}  {JOINED}  {AGAIN}"
MOVING = {"Concat", "Split", "Slice", "Reshape", "Transpose", "Gather"}


CONSTANTS = """int64[5] apart = {0, 2, 3, 5, 3}, int64[4] whole = {0, 6, 5, 3}, int64[3] picked = {5, 0, 3},
    int64[1] one = {1}, int64[1] two = {2}, int64[1] six = {6}, int64[3] twice = {4, 1, 4}"""


def _text(body: str, outputs: str = "float[N, 4, 5, 3] y") -> str:
    return f"{H} g ({GIVEN}) => ({outputs}) <{CONSTANTS}> {{ {body} }}"


def test_nothing_moves_in_units_of_halves(prove):
    proof = prove(
        _text(f"{NETWORK}  {LAST}"),
        ChannelOrders(),
        constants=WEIGHTS,
        rewritten=2,
        batches=(1, 3),
    )
    assert not MOVING & set(proof.ops)
    assert proof.ops.count("Where") == 2
    assert proof.ops.count("Conv") == 6


def test_depthwise_convolutions_keep_the_order(prove):
    body = f"{NETWORK}  z = Conv<{ALL}>(r2, e)  y = Conv(z, f)"
    proof = prove(_text(body), ChannelOrders(), constants=WEIGHTS, rewritten=2, batches=(1, 2))
    assert not MOVING & set(proof.ops)


def test_new_channels_may_come_first(prove):
    body = f"{NETWORK}  {LAST}".replace("(k, n)", "(n, k)")
    proof = prove(_text(body), ChannelOrders(), constants=WEIGHTS, rewritten=2, batches=(1, 2))
    assert not MOVING & set(proof.ops)


@pytest.mark.parametrize(
    ("choice", "places"),
    [
        ("m = Gather<axis = 1>(c, picked)", [5, 0, 3]),
        ("m = Gather<axis = 1>(c, twice)", [4, 1, 4]),
        ("m = Slice(c, one, six, one, two)", [1, 3, 5]),
    ],
)
def test_any_choice_of_channels_is_read_in_place(prove, load, choice, places):
    text = _text(f"{FIRST}  {choice}  h = Conv(m, g)  y = Conv(h, f)")
    graph = load(text, WEIGHTS)
    (moved,) = [node.outputs[0] for node in graph.nodes if node.outputs[0].name == "m"]
    assert channels_of(moved).places.tolist() == places
    proof = prove(text, ChannelOrders(), constants=WEIGHTS, batches=(1, 2))
    assert not {"Gather", "Slice", "Concat"} & set(proof.ops)


def test_what_is_chosen_is_what_was_computed(load):
    """A wider convolution has weights for its own channels only, and only these are taken from it."""
    graph = load(_text(f"{NETWORK}  {LAST}"), WEIGHTS)
    run_passes(graph, [ChannelOrders()])
    joins = [node for node in graph.nodes if node.op == "Where"]
    assert [int(node.inputs[0].values.sum()) for node in joins] == [3, 3]
    for node in joins:
        relu = node.inputs[2].inputs[0]
        weight = floats(relu.inputs[0].inputs[0].inputs[1])
        assert weight is not None
        own = weight.any(axis=(1, 2, 3))
        np.testing.assert_array_equal(own, ~node.inputs[0].values.reshape(-1))


@pytest.mark.parametrize(
    ("body", "outputs", "reason"),
    [
        (f"{NETWORK}  {LAST}", "float[N, 4, 5, 3] y, float[N, 6, 5, 3] r2", "'r2' is a graph output"),
        (f"{NETWORK}  z = Relu(r2)  y = Conv(z, f)", None, "Relu 'Relu_17' reads 'r2'"),
        (f"{FIRST}  {SHUFFLE}  {HALVES}  y = Conv<pads = [1, 1, 1, 1]>(m, o)",
         "float[N, 3, 5, 3] y", "'Conv_9' would multiply 6 channels instead of 3"),
        (f"{FIRST}  {SHUFFLE}  y = Conv<group = 2>(r, w)", "float[N, 3, 5, 3] y", "has groups of channels"),
    ],
)  # fmt: skip
def test_orders_stay_where_someone_needs_them(load, body, outputs, reason):
    text = _text(body, outputs or "float[N, 4, 5, 3] y")
    if "group = 2" in body:
        text = text.replace("float[3, 3, 1, 1] w", "float[4, 3, 1, 1] w").replace(
            "[N, 3, 5", "[N, 4, 5"
        )
    graph = load(text, WEIGHTS)
    result = ChannelOrders()(graph)
    assert any(reason in each.reason for each in result.refusals), result.refusals


def test_parts_that_begin_aligned_stay_joined(load):
    """Splits in place cost nothing: neither halves of a Concat nor its parts are touched."""
    text = f"""{H} g (float[1, 8, 4, 4] x, float[8, 8, 1, 1] w) => (float[1, 8, 4, 4] y) {{
        p = Conv(x, w)  q = Conv(x, w)  c = Concat<axis = 1>(p, q)
        a, b = Split<axis = 1, num_outputs = 2>(c)  y = Conv(b, w) }}"""
    assert ChannelOrders(DType.FP16)(load(text, "w")).rewritten == 0


def _shifted(function, argument):
    """The function with its places, an argument, off by one channel."""

    def planted(*given):
        given = list(given)
        given[argument] = _turned(given[argument])
        return function(*given)

    return planted


def _turned(places):
    if isinstance(places, Channels):
        return Channels(places.source, np.roll(places.places, 1))
    return np.roll(places, 1)


@pytest.mark.parametrize(("name", "argument"), [("read_among", 2), ("write_among", 3)])
def test_a_planted_order_is_found(prove, monkeypatch, name, argument):
    planted = _shifted(getattr(channel_orders, name), argument)
    monkeypatch.setattr(channel_orders, name, planted)
    with pytest.raises(AssertionError, match="Not equal"):
        prove(_text(f"{NETWORK}  {LAST}"), ChannelOrders(), constants=WEIGHTS, rewritten=2)


def test_it_is_one_choice(load):
    graph = load(_text(f"{NETWORK}  {LAST}"), WEIGHTS)
    result = ChannelOrders()(graph)
    (site,) = result.sites
    again = ChannelOrders()
    again.changed = frozenset({site.key})
    graph = load(_text(f"{NETWORK}  {LAST}"), WEIGHTS)
    refused = again(graph)
    assert refused.rewritten == 0
    assert {"Concat", "Split"} <= {node.op for node in graph.nodes}
