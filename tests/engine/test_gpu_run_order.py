"""Streams are kept in order: what a run waits for, what waits for it, and who is told."""

from __future__ import annotations

from support.devices.device_arrays import Dlpack, Exchanged, Interface, x_of, y_of
from support.devices.stream_device import Streams

from wpk.device import StreamDevice
from wpk.emulator import Emulator
from wpk.engine import Engine


def test_the_device_is_one_with_streams(device: Streams) -> None:
    assert isinstance(device, StreamDevice)
    assert not isinstance(Emulator(), StreamDevice)


def test_the_producer_is_told_the_stream(engine: Engine, device: Streams) -> None:
    x, y = Dlpack(x_of(engine)), Dlpack(y_of())
    engine.run({"x": x}, outputs={"y": y}, stream=5)
    engine.run({"x": x}, outputs={"y": y}, stream=0)
    engine.run({"x": x}, outputs={"y": y})
    assert x.asked == y.asked == [5, 1, device.stream]


def test_a_run_waits_for_the_one_before_and_for_what_the_array_waits_for(
    engine: Engine, device: Streams
) -> None:
    x, y = x_of(engine), y_of()
    engine.run({"x": Interface(x)}, outputs={"y": Interface(y)})
    device.log.clear()
    engine.run({"x": Interface(x, stream=9)}, outputs={"y": Interface(y)}, stream=5)
    assert device.log == [("record", 9), ("hold", 5), ("hold", 5), ("replay", 5), ("record", 5)]
    device.log.clear()
    engine.run(
        {"x": Interface(x, stream=1)}, outputs={"y": Interface(y)}
    )  # legacy: waits by itself
    ours = device.stream
    assert device.log == [("hold", ours), ("replay", ours), ("record", ours)]


def test_runs_that_follow_each_other_on_the_devices_stream_are_in_order_by_themselves(
    engine: Engine, device: Streams
) -> None:
    x, y = {"x": Interface(x_of(engine))}, {"y": Interface(y_of())}
    ours = device.stream
    engine.run(x, outputs=y, stream=5)
    for stream, held in [(None, True), (None, False), (5, True), (5, True), (None, True)]:
        device.log.clear()
        engine.run(x, outputs=y, stream=stream)
        on = stream or ours
        assert device.log == [("hold", on)] * held + [("replay", on), ("record", on)]


def test_a_library_is_asked_once_a_run_which_stream_it_works_on(
    engine: Engine, device: Streams
) -> None:
    x, y = x_of(engine), y_of()
    engine.run({"x": Exchanged(x)}, outputs={"y": Exchanged(y)}, stream=9)
    device.log.clear()
    engine.run({"x": Exchanged(x)}, outputs={"y": Exchanged(y)}, stream=5)
    assert device.log == [("record", 9), ("hold", 5), ("hold", 5), ("replay", 5), ("record", 5)]
    device.log.clear()
    engine.run({"x": Exchanged(x)}, outputs={"y": Exchanged(y)}, stream=9)
    assert device.log == [("hold", 9), ("replay", 9), ("record", 9)]


def test_a_run_on_the_host_waits_for_runs_on_streams(engine: Engine, device: Streams) -> None:
    x = x_of(engine)
    engine.run({"x": Interface(x)}, stream=5)
    device.log.clear()
    engine.run({"x": x})
    assert device.log[0] == ("wait", 0)
