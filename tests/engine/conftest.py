"""Fixtures of these tests."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.devices.stream_device import Streams
from support.plans.small_plans import other_model, small_model, small_plan

from wpk.engine import Engine
from wpk.plan.plan_file import read_plan

__all__ = ["other_model", "small_model", "small_plan"]


@pytest.fixture
def device() -> Streams:
    return Streams()


@pytest.fixture
def engine(small_plan: Path, device: Streams) -> Iterator[Engine]:
    with Engine(read_plan(small_plan), device) as engine:
        yield engine
