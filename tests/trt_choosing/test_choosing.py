"""Choosing, with a simulated TensorRT of ours: faults are planted, and must be found."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trt_choosing.simulated import Operator, Simulated

from wpk.tensorrt import TensorRTError
from wpk.tensorrt.choosing import Choices, Effort, GroupChoice, choose

FASTER = Operator(10.0, 5.0)
SLOWER = Operator(10.0, 20.0)


def _choose(simulated: Simulated, *required: str) -> Choices:
    return choose(simulated, simulated, simulated.network(required=frozenset(required)))[1]


def _of(choices: Choices, operator: str) -> GroupChoice:
    (found,) = (each for each in choices.groups if operator in each.operators)
    return found


def test_only_faster_groups_are_replaced_and_all_times_told() -> None:
    simulated = Simulated([FASTER, SLOWER, FASTER], copy=1.0)
    engine, choices = choose(simulated, simulated, simulated.network())
    assert choices.replaced == ("o0", "o2")
    assert _of(choices, "o1").why == "not faster, copies included"
    first = _of(choices, "o0")
    assert (first.native_seconds, first.plugin_seconds, first.chosen) == (10.0, 5.0, "plugin")
    assert engine.seconds == 5 + 10 + 5 + 2
    assert [each.accepted for each in choices.rebuilds] == [True]
    assert json.loads(json.dumps(choices.as_json(), allow_nan=False))["schema"] == 1


def test_copies_are_charged_to_the_plugin_that_needs_them() -> None:
    hidden = Operator(10.0, 1.0, hidden=True)
    choices = _choose(Simulated([hidden, FASTER, hidden], copy=4.0))
    group = _of(choices, "o1")
    assert (group.plugin_seconds, group.reformat_seconds) == (5.0, 8.0)
    assert (group.chosen, choices.replaced) == ("native", ())


def test_hidden_groups_are_left_alone() -> None:
    choices = _choose(Simulated([Operator(10.0, 1.0, hidden=True), FASTER]))
    assert choices.replaced == ("o1",)
    assert _of(choices, "o0").why.startswith("hidden")


def test_layers_without_names_leave_their_operators_alone() -> None:
    simulated = Simulated([Operator(10.0, 1.0, nameless=True), FASTER])
    assert _choose(simulated).replaced == ("o1",)
    assert all("o0" not in replaced for replaced in simulated.built)


def test_an_operator_that_a_fused_layer_does_not_name_is_left_alone() -> None:
    chain = [Operator(1.0, 5.0), Operator(10.0, 1.0, fused=True), Operator(9.0, 1.0, nameless=True)]
    choices = _choose(Simulated(chain))
    assert choices.replaced == ("o1",)
    assert _of(choices, "o2").why.startswith("hidden")


def test_what_tensorrt_fuses_is_judged_and_replaced_together() -> None:
    choices = _choose(Simulated([Operator(10.0, 1.0, fused=True), Operator(1.0, 5.0), SLOWER]))
    group = _of(choices, "o0")
    assert group.operators == ("o0", "o1")
    assert (group.native_seconds, group.plugin_seconds) == (11.0, 6.0)
    assert choices.replaced == ("o0", "o1")


def test_a_group_that_slows_the_whole_engine_is_found_by_bisection() -> None:
    chain = [FASTER] * 4
    chain[2] = Operator(10.0, 5.0, drag=100.0)
    choices = _choose(Simulated(chain))
    assert choices.replaced == ("o0", "o1", "o3")
    assert _of(choices, "o2").why.startswith("faster alone, but")
    assert [each.accepted for each in choices.rebuilds] == [False, True, False, True]


def test_rebuilds_are_at_most_six() -> None:
    choices = _choose(Simulated([Operator(10.0, 5.0, drag=100.0)] * 16))
    assert choices.replaced == ()
    assert len(choices.rebuilds) == Effort().rebuilds == 6


def test_a_plugin_that_is_not_built_does_not_take_others_along() -> None:
    simulated = Simulated([FASTER, Operator(10.0, 5.0, unbuildable=True), FASTER])
    choices = _choose(simulated)
    assert choices.replaced == ("o0", "o2")
    assert "simulated: o1 fails" in _of(choices, "o1").why


def test_a_layer_that_the_profile_lacks_is_not_taken_for_fast() -> None:
    choices = _choose(Simulated([Operator(10.0, 1.0, unprofiled=True), FASTER]))
    assert choices.replaced == ("o1",)
    assert "lacks" in _of(choices, "o0").why


def test_what_tensorrt_lacks_is_replaced_however_slow() -> None:
    simulated = Simulated([SLOWER, FASTER])
    choices = _choose(simulated, "o0")
    assert choices.replaced == ("o0", "o1")
    assert _of(choices, "o0").why == "TensorRT has no implementation"
    assert all("o0" in replaced for replaced in simulated.built)


def test_an_engine_that_is_not_built_without_plugins_is_an_error() -> None:
    simulated = Simulated([Operator(1.0, 1.0, unbuildable=True)])
    with pytest.raises(TensorRTError, match="o0 fails"):
        _choose(simulated, "o0")


def test_nothing_to_replace_builds_one_engine() -> None:
    simulated = Simulated([Operator(10.0, 1.0, hidden=True)])
    assert _choose(simulated).rebuilds == ()
    assert simulated.built == [frozenset()]


OPERATORS = st.builds(
    Operator,
    native=st.floats(1.0, 100.0),
    plugin=st.floats(1.0, 100.0),
    fused=st.booleans(),
    hidden=st.booleans(),
    nameless=st.booleans(),
    unbuildable=st.booleans(),
    drag=st.sampled_from([0.0, 0.0, 200.0]),
    unprofiled=st.booleans(),
)
SIMULATIONS = st.builds(
    Simulated,
    st.lists(OPERATORS, min_size=1, max_size=10),
    copy=st.floats(0.0, 10.0),
    noise=st.floats(0.0, 0.1),
    seed=st.integers(0, 1000),
)


@settings(max_examples=300, deadline=None)
@given(SIMULATIONS)
def test_whatever_is_planted(simulated: Simulated) -> None:
    network = simulated.network()
    engine, choices = choose(simulated, simulated, network)
    replaced = frozenset(choices.replaced)
    native = Simulated(simulated.chain, simulated.copy).build(frozenset())
    assert engine == Simulated(simulated.chain, simulated.copy).build(replaced)
    assert len(choices.rebuilds) <= 6
    assert sorted(n for each in choices.groups for n in each.operators) == sorted(network.operators)
    for each in choices.groups:
        assert (each.chosen == "plugin") == (set(each.operators) <= replaced)
        if each.chosen == "plugin":
            assert each.native_seconds is not None
            assert each.plugin_seconds is not None
            assert each.reformat_seconds is not None
            assert each.noise_seconds is not None
            plugin = each.plugin_seconds + each.reformat_seconds
            assert each.native_seconds - plugin > each.noise_seconds
    touched = [simulated.chain[int(name[1:])] for name in replaced]
    assert not any(o.hidden or o.nameless or o.unbuildable or o.unprofiled for o in touched)
    # Medians of runs within ±noise are within ±noise: nothing slower than that is ever kept.
    slack = (1 + simulated.noise) / (1 - simulated.noise)
    assert not replaced or engine.seconds <= native.seconds * slack ** len(choices.rebuilds)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(1.0, 100.0), min_size=1, max_size=8), st.floats(0.0, 0.02), st.integers())
def test_clear_winners_win_and_clear_losers_lose(
    natives: list[float], noise: float, seed: int
) -> None:
    chain = [
        Operator(seconds, seconds * (0.1 if i % 2 == 0 else 2.0))
        for i, seconds in enumerate(natives)
    ]
    simulated = Simulated(chain, noise=noise, seed=seed)
    choices = _choose(simulated)
    winners = {f"o{i}" for i in range(0, len(chain), 2)}
    assert {
        name for each in choices.groups if each.why.startswith("faster") for name in each.operators
    } == winners
    assert set(choices.replaced) <= winners


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(1.0, 100.0), min_size=1, max_size=6), st.floats(0.001, 0.3), st.integers()
)
def test_noise_alone_seldom_wins(natives: list[float], noise: float, seed: int) -> None:
    """A plugin as fast as TensorRT's layer is taken only if luck exceeds the range of its noise."""
    simulated = Simulated([Operator(s, s) for s in natives], noise=noise, seed=seed)
    for rebuild in _choose(simulated).rebuilds:
        if rebuild.accepted:
            assert rebuild.seconds is not None
            assert rebuild.rival_seconds is not None
            assert rebuild.noise_seconds is not None
            assert rebuild.rival_seconds - rebuild.seconds > rebuild.noise_seconds


def test_equal_plugins_are_refused_nearly_always() -> None:
    taken = sum(
        bool(_choose(Simulated([Operator(10.0, 10.0)] * 3, noise=0.1, seed=seed)).replaced)
        for seed in range(200)
    )
    assert taken <= 2
