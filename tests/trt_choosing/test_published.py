"""Parsers on engines that TensorRT made: the files that NVIDIA publishes with trt-engine-explorer."""

from pathlib import Path

import pytest

from wpk.tensorrt.choosing import parse_engine, parse_latencies, parse_profile


@pytest.fixture(scope="session")
def graphs(published: Path) -> list[Path]:
    found = sorted(published.rglob("*.graph.json"))
    assert found, f"{published} holds no *.graph.json"
    return found


def test_every_engine_and_its_profile_name_the_same_layers(graphs: list[Path]) -> None:
    for path in graphs:
        engine = parse_engine(path.read_text())
        assert engine.is_detailed, path
        assert len(engine.bindings) >= 2, path
        sibling = path.name.replace(".graph.json", ".profile.json")
        profile = parse_profile(path.with_name(sibling).read_text())
        assert [each.name for each in profile.times] == [each.name for each in engine.layers], path


def test_times_of_whole_executions(graphs: list[Path]) -> None:
    for path in graphs:
        sibling = path.name.replace(".graph.json", ".timing.json")
        seconds = parse_latencies(path.with_name(sibling).read_text())
        assert len(seconds) > 100
        assert 0 < min(seconds) <= max(seconds) < 1, path
