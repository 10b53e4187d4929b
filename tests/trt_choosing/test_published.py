"""Parsers on engines that TensorRT made: the files that NVIDIA publishes with trt-engine-explorer."""

from pathlib import Path

import pytest

from wpk.tensorrt.choosing import parse_engine
from wpk.tensorrt.choosing.charging import costs
from wpk.tensorrt.choosing.grouping import united
from wpk.tensorrt.choosing.naming import inserted_for
from wpk.tensorrt.choosing.network import Network
from wpk.tensorrt.choosing.placement import Role, place


@pytest.fixture(scope="session")
def graphs(published: Path) -> list[Path]:
    found = sorted(published.rglob("*.graph.json"))
    assert found, f"{published} holds no *.graph.json"
    return found


def test_every_engine_has_ends_and_kinds_of_layers(graphs: list[Path]) -> None:
    for path in graphs:
        engine = parse_engine(path.read_text())
        assert any(layer.kind for layer in engine.layers), path
        assert len(engine.bindings) >= 2, path


def test_layers_are_mapped_back_to_the_nodes_that_their_names_join(graphs: list[Path]) -> None:
    for path in graphs:
        engine = parse_engine(path.read_text())
        own = [each.name for each in engine.layers if inserted_for(each) is None]
        nodes = frozenset(name for joined in own for name in joined.split(" + "))
        placed = place(engine, Network({}, bare=nodes))
        assert not [each.layer.name for each in placed if each.role is Role.UNKNOWN], path
        assert {each.layer.name for each in placed if each.role is Role.WORK} >= set(own), path


def test_every_copy_is_charged_to_a_neighbour(graphs: list[Path]) -> None:
    for path in graphs:
        engine = parse_engine(path.read_text())
        own = [each.name for each in engine.layers if inserted_for(each) is None]
        network = Network({}, bare=frozenset(own))
        placed = place(engine, network)
        groups = united(network.bare, [placed])
        found = costs(placed, [1.0] * len(placed), groups)
        charged = sum(cost.seconds for cost in found if cost is not None)
        assert charged == pytest.approx(len(placed)), path
