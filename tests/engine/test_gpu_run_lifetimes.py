"""What runs on arrays keep, and when it is given back: bindings, results, the engine's memory."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest
from support.devices.device_arrays import Interface, x_of, y_of
from support.devices.stream_device import Streams

from wpk.engine import Engine
from wpk.errors import EngineError
from wpk.plan.plan_file import read_plan


def test_the_same_arrays_are_bound_once(engine: Engine, device: Streams) -> None:
    x, other, y = x_of(engine), x_of(engine), y_of()
    for array in (x, other, x, other, x):
        engine.run({"x": Interface(array)}, outputs={"y": Interface(y)})
    assert device.captured == 2


def test_the_binding_used_longest_ago_is_forgotten_first(engine: Engine, device: Streams) -> None:
    arrays = [x_of(engine) for _ in range(17)]
    y = Interface(y_of())

    def run(array: np.ndarray) -> None:
        engine.run({"x": Interface(array)}, outputs={"y": y})

    for array in arrays[:16]:
        run(array)
    run(arrays[0])
    assert device.captured == 16
    run(arrays[16])  # the second is forgotten, the first was used since
    run(arrays[0])
    assert device.captured == 17
    run(arrays[1])
    assert device.captured == 18


def test_a_run_again_is_bound_again_where_the_arena_was_moved(
    engine: Engine, device: Streams
) -> None:
    x, y = {"x": Interface(x_of(engine))}, {"y": Interface(y_of())}
    for _ in range(2):
        engine.run(x, outputs=y)
    assert device.captured == 1
    engine.run({"x": x_of(engine, 60)})
    engine.run(x, outputs=y)
    assert device.captured == 3


def test_results_outlive_the_engine_and_are_freed_with_the_last_reference(
    small_plan: Path, device: Streams
) -> None:
    with Engine(read_plan(small_plan), device) as engine:
        y = engine.run({"x": Interface(x_of(engine))})["y"]
        kept = y.numpy()
    assert (y.numpy() == kept).all()
    assert device.held == {y.address}
    del y
    gc.collect()
    assert not device.held


def test_a_closed_engine_says_so(small_plan: Path, device: Streams) -> None:
    engine = Engine(read_plan(small_plan), device)
    engine.close()
    engine.close()
    assert not device.held
    with pytest.raises(EngineError, match="the engine was closed"):
        engine.run({"x": x_of(engine)})


def test_an_engine_that_does_not_load_leaves_nothing_behind(small_plan: Path) -> None:
    class Small(Streams):
        def allocate(self, size: int) -> int:
            if len(self.held) == 2:
                raise EngineError("no memory", fix="buy some")
            return super().allocate(size)

    device = Small()
    with pytest.raises(EngineError, match="no memory"):
        Engine(read_plan(small_plan), device)
    assert not device.held


def test_memory_is_what_is_allocated(small_plan: Path) -> None:
    class Counting(Streams):
        def __init__(self) -> None:
            super().__init__()
            self.sizes: dict[int, int] = {}

        def allocate(self, size: int) -> int:
            address = super().allocate(size)
            self.sizes[address] = size
            return address

        def free(self, address: int) -> None:
            super().free(address)
            del self.sizes[address]

    device = Counting()
    with Engine(read_plan(small_plan), device) as engine:
        x = x_of(engine)
        for batch in (1, 6):
            engine.run({"x": x_of(engine, batch)})
            assert engine.memory.total_bytes == sum(device.sizes.values())
        engine.run({"x": Interface(x)})
        assert engine.memory.output_bytes == 3 * 5 * 4
        assert "MiB on the device: weights" in str(engine.memory)
    assert engine.memory.total_bytes == 0
