"""Engine layers mapped to the network's operators, and copies charged to their neighbours.

The engines are ours, in TensorRT's forms; none of them was built by TensorRT.
"""

import pytest

from wpk.errors import UnsupportedError
from wpk.tensorrt.choosing.charging import Cost, costs
from wpk.tensorrt.choosing.grouping import united
from wpk.tensorrt.choosing.inspector import EngineInformation, EngineLayer, LayerTensor
from wpk.tensorrt.choosing.naming import inserted_for, nodes_in, nodes_of, region_of
from wpk.tensorrt.choosing.network import Network
from wpk.tensorrt.choosing.placement import Role, hidden_units, place, seconds_of
from wpk.tensorrt.choosing.profile import LayerTime, Profile


def _layer(name: str, reads: str = "", makes: str = "", **others: str) -> EngineLayer:
    tensors = [
        tuple(LayerTensor(each, "", "", ()) for each in names.split()) for names in (reads, makes)
    ]
    return EngineLayer(name, inputs=tensors[0], outputs=tensors[1], **others)


def _network(*operators: str, bare: tuple[str, ...] = ()) -> Network:
    return Network({each: frozenset({f"{each}/n"}) for each in operators}, frozenset(bare))


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("Conv_0 + Relu_1", {"Conv_0", "Relu_1"}),
        ("w + QuantizeLinear_7 + Conv_9 + PWN(Clip_13)", {"Conv_9", "Clip_13"}),
        ("PWN(PWN(a + (Unnamed Layer* 16) [Shuffle], PWN(b)), c)", {"a", "b", "c"}),
        ("Conv_9 || Conv_0", {"Conv_9", "Conv_0"}),
        ("Conv_90", set()),
        ("x/Conv_9", set()),
        ("{ForeignNode[a...b]}", set()),
        ("p + q", {"p + q"}),
        ("p + q + a", {"p + q", "a"}),
        ("f(x) + a", {"f(x)", "a"}),
    ],
)
def test_nodes_are_found_at_the_joints_of_a_name(name: str, nodes: set[str]) -> None:
    known = {"Conv_0", "Relu_1", "Conv_9", "Clip_13", "a", "b", "c", "p", "p + q", "f(x)"}
    assert nodes_in(name, frozenset(known)) == nodes


def test_metadata_names_nodes_whose_layer_does_not() -> None:
    layer = _layer("__myl_MulAdd_myl0_3", metadata="[ONNX Layer: a[0]] + [ONNX Layer: b]")
    assert nodes_of(layer, frozenset({"a[0]", "b"})) == {"a[0]", "b"}
    assert nodes_of(layer, frozenset({"c"})) == frozenset()


@pytest.mark.parametrize(
    ("layer", "target"),
    [
        (_layer("Reformatting CopyNode for Input Tensor 0 to a + b"), "a + b"),
        (_layer("Reformatting CopyNode for Output Tensor 12 to a"), "a"),
        (_layer("a || b output reformatter 0"), "a || b"),
        (_layer("reshape_after_a"), "a"),
        (_layer("copied_squeeze_after_a"), "a"),
        (_layer("something", kind="Reformat"), ""),
        (_layer("a"), None),
    ],
)
def test_inserted_layers_are_known_by_their_names(layer: EngineLayer, target: str | None) -> None:
    assert inserted_for(layer) == target


def test_regions_of_the_compiler_have_numbers() -> None:
    assert region_of(_layer("__myl_MulAdd_myl12_3")) == "myl12"
    assert region_of(_layer("conv_3")) is None


def test_each_layer_has_a_role() -> None:
    engine = EngineInformation(
        (
            _layer("a/n + b/n"),
            _layer("b/n", kind="Reformat"),
            _layer("Reformatting CopyNode for Input Tensor 0 to c"),
            _layer("Reformatting CopyNode for Input Tensor 0 to {ForeignNode[d/n...e/n]}"),
            _layer("{ForeignNode[d/n...e/n]}"),
            _layer("(Unnamed Layer* 3) [Shuffle]"),
            _layer("c"),
            _layer("relu"),
        ),
        (),
    )
    network = _network("a", "b", "c", "d", "e", bare=("relu",))
    placed = place(engine, network)
    work, inserted, hidden, unknown = Role.WORK, Role.INSERTED, Role.HIDDEN, Role.UNKNOWN
    assert [each.role for each in placed] == [
        work,
        work,
        inserted,
        inserted,
        hidden,
        unknown,
        work,
        work,
    ]
    assert placed[0].units == {"a", "b"}
    assert placed[2].units == {"c"}
    assert hidden_units(placed, network) == {"d", "e"}


def test_a_region_with_one_layer_that_tells_nothing_is_hidden_whole() -> None:
    layers = (
        _layer("__myl_Mul_myl0_0", metadata="[ONNX Layer: a/n]"),
        _layer("__myl_Move_myl0_1"),
        _layer("__myl_Mul_myl1_0", metadata="[ONNX Layer: b/n]"),
    )
    network = _network("a", "b")
    placed = place(EngineInformation(layers, ()), network)
    assert [each.role for each in placed] == [Role.HIDDEN, Role.HIDDEN, Role.WORK]
    assert hidden_units(placed, network) == {"a"}


def test_operators_fused_in_any_engine_are_one_group() -> None:
    network = _network("a", "b", "c", "d")
    native = place(
        EngineInformation((_layer("a/n + b/n"), _layer("c/n"), _layer("d/n")), ()), network
    )
    other = place(EngineInformation((_layer("a"), _layer("b/n + c/n"), _layer("d")), ()), network)
    units = network.operators
    assert united(units, [native]) == [{"a", "b"}, {"c"}, {"d"}]
    assert united(units, [native, other]) == [{"a", "b", "c"}, {"d"}]


def test_times_of_layers_of_one_name_keep_their_order() -> None:
    engine = EngineInformation(
        (_layer("a"), _layer("a"), _layer("b"), _layer("quiet", kind="NoOp")), ()
    )
    profile = Profile((LayerTime("a", 1.0), LayerTime("a", 2.0)), 1)
    assert seconds_of(place(engine, _network("a", "b")), profile) == (1.0, 2.0, None, 0.0)


def _charged(layers: tuple[EngineLayer, ...], times: tuple[float | None, ...]) -> list[Cost | None]:
    placed = place(EngineInformation(layers, ()), _network("a", "b", "c"))
    return costs(placed, times, [frozenset({"a"}), frozenset({"b"})])


COPY = "Reformatting CopyNode for Input Tensor 0 to "


def test_a_copy_is_shared_by_the_neighbours_that_are_compared() -> None:
    layers = (
        _layer("a", "x", "p"),
        _layer(f"{COPY}b", "p", "q"),
        _layer("b", "q", "r"),
        _layer(f"{COPY}c/n", "r", "s"),
        _layer("c/n", "s", "t"),
    )
    assert _charged(layers, (1.0, 0.5, 2.0, 0.25, 4.0)) == [Cost(1.0, 0.25), Cost(2.0, 0.5)]


def test_copies_in_a_row_are_charged_past_each_other() -> None:
    layers = (
        _layer("a", "x", "p"),
        _layer(f"{COPY}c/n", "p", "q"),
        _layer("flat", "q", "r", kind="NoOp"),
        _layer("c/n", "r", "t"),
    )
    assert _charged(layers, (1.0, 0.5, 0.25, 4.0))[0] == Cost(1.0, 0.75)


def test_without_tensors_a_copy_is_charged_to_whom_it_names() -> None:
    layers = (_layer("a"), _layer(f"{COPY}b"), _layer("b"))
    assert _charged(layers, (1.0, 0.5, 2.0)) == [Cost(1.0, 0.0), Cost(2.0, 0.5)]


def test_a_group_whose_layer_was_not_profiled_has_no_cost() -> None:
    assert _charged((_layer("a"), _layer("b")), (None, 2.0)) == [None, Cost(2.0, 0.0)]


def test_what_nobody_computes_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"neither TensorRT nor a plugin.*: a"):
        Network({"a": frozenset({"a/n"})}, required=frozenset({"a"}))
