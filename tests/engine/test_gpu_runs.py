"""Runs on arrays that lie on the device: nothing is copied, and streams are kept in order.

The device here has streams and marks, and executes on the CPU at once: its memory is the process's, so
that arrays of NumPy stand for those of other libraries.
"""

from __future__ import annotations

import ctypes
import gc
import struct
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from wpk.device.dlpack import make_capsule
from wpk.device.streams import StreamDevice
from wpk.dtypes import from_numpy
from wpk.emulator.emulator import Emulator
from wpk.engine.engine import Engine
from wpk.engine.inputs import random_inputs
from wpk.errors import EngineError
from wpk.execution import OneByOne, Work
from wpk.pipeline import optimize
from wpk.plans.plan_file import read_plan


class Started(OneByOne):
    def __init__(self, device: Streams, works: Sequence[Work]) -> None:
        super().__init__(device, works)
        self._log = device.log

    def replay_on(self, stream: int) -> None:
        self._log.append(("replay", stream))
        self.replay()


class Logged:
    def __init__(self, log: list[tuple[str, int]]) -> None:
        self._log = log

    def record(self, stream: int) -> None:
        self._log.append(("record", stream))

    def hold(self, stream: int) -> None:
        self._log.append(("hold", stream))

    def wait(self) -> None:
        self._log.append(("wait", 0))


class Streams(Emulator):
    """Executes at once, and notes what was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.ordinal, self.stream = 0, 77
        self.log: list[tuple[str, int]] = []
        self.captured = 0
        self.held: set[int] = set()
        self.elsewhere: dict[int, int | None] = {}
        self.inside = 0

    def __enter__(self) -> None:
        self.inside += 1

    def __exit__(self, *error: object) -> None:
        self.inside -= 1

    def active(self) -> Streams:
        return self

    @property
    def current(self) -> Streams:
        return self

    def capture(self, works: Sequence[Work]) -> Started:
        assert self.inside
        self.captured += 1
        return Started(self, works)

    def make_mark(self) -> Logged:
        return Logged(self.log)

    def located(self, address: int) -> int | None:
        return self.elsewhere.get(address, 0)

    def copy_on(self, stream: int, source: int, target: int, size: int) -> None:
        self.log.append(("copy", stream))
        ctypes.memmove(target, source, size)

    def settle(self) -> None:
        pass

    def allocate(self, size: int) -> int:
        address = super().allocate(size)
        self.held.add(address)
        return address

    def free(self, address: int) -> None:
        self.held.remove(address)
        super().free(address)


def aligned(array: np.ndarray, offset: int = 0) -> np.ndarray:
    """A copy at a multiple of 256 bytes, and ``offset`` further."""
    room = np.empty(array.nbytes + 512, np.uint8)
    start = -room.ctypes.data % 256 + offset
    place = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    place[...] = array
    return place


class Interface:
    """An array that offers ``__cuda_array_interface__``."""

    def __init__(self, array: np.ndarray, **changes: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "strides": None if array.flags.c_contiguous else array.strides,
            **changes,
        }


class Dlpack:
    """An array that offers ``__dlpack__``."""

    def __init__(self, array: np.ndarray, ordinal: int = 0) -> None:
        self.array, self.ordinal = array, ordinal
        self.asked: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.ordinal

    def __dlpack__(self, *, stream: int) -> object:
        self.asked.append(stream)
        dtype = from_numpy(self.array.dtype)
        assert dtype is not None
        shape = self.array.shape
        return make_capsule(self.array.ctypes.data, self.ordinal, dtype, shape, self.array)


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
def to_tensor(given: Exchanged, out: int) -> int:
    shape = ctypes.addressof(given.shape)
    fields = (given.array.ctypes.data, 2, 0, len(given.shape), 2, 32, 1, shape, 0, 0)
    ctypes.memmove(out, struct.pack("=Q3i2BH3Q", *fields), 48)
    return 0


@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.c_void_p)
def current_stream(device: int, ordinal: int, out: int) -> int:
    ctypes.c_void_p.from_address(out).value = 9
    return 0


def exchange_table() -> ctypes.Array[ctypes.c_char]:
    functions = [ctypes.cast(f, ctypes.c_void_p).value for f in (to_tensor, current_stream)]
    return ctypes.create_string_buffer(struct.pack("=2I6Q", 1, 3, 0, 0, 0, 0, *functions))


class Exchanged:
    """An array, fp32, that offers DLPack's C functions; its library works on stream 9."""

    table, name = exchange_table(), b"dlpack_exchange_api"  # a capsule keeps neither
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    __dlpack_c_exchange_api__ = new(("PyCapsule_New", ctypes.pythonapi))(
        ctypes.addressof(table), name, None
    )

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)


@pytest.fixture
def device() -> Streams:
    return Streams()


@pytest.fixture
def engine(small_plan: Path, device: Streams) -> Iterator[Engine]:
    with Engine(read_plan(small_plan), device) as engine:
        yield engine


def expected(engine: Engine, x: np.ndarray) -> np.ndarray:
    return engine.run({"x": x})["y"]


def x_of(engine: Engine, batch: int = 3) -> np.ndarray:
    return aligned(random_inputs(engine.plan, batch, {"batch": batch})["x"])


def y_of(batch: int = 3) -> np.ndarray:
    return aligned(np.full((batch, 5), np.nan, np.float32))


def test_the_device_is_one_with_streams(device: Streams) -> None:
    assert isinstance(device, StreamDevice)
    assert not isinstance(Emulator(), StreamDevice)


@pytest.mark.parametrize("kind", [Interface, Dlpack, Exchanged])
def test_arrays_are_read_and_written_where_they_lie(
    engine: Engine, device: Streams, kind: type
) -> None:
    x, y = x_of(engine), y_of()
    given = kind(y)
    outputs = engine.run({"x": kind(x)}, outputs={"y": given}, stream=5)
    assert outputs == {"y": given}
    assert not [entry for entry in device.log if entry[0] == "copy"]
    assert (y == expected(engine, x)).all()


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


def test_a_run_again_is_the_same_run_whatever_came_between(engine: Engine, device: Streams) -> None:
    xs = [x_of(engine, batch) for batch in (3, 3, 6)]
    xs[1] *= 2
    wanted = [expected(engine, x) for x in xs]  # by runs on the host, in other bindings
    ours = Interface(y_of())
    for index, own in [(0, 0), (0, 0), (1, 0), (0, 1), (0, 0), (2, 1), (1, 1), (1, 0), (2, 1)]:
        outputs = None if own else {"y": ours}
        y = engine.run({"x": Interface(xs[index])}, outputs=outputs)["y"]
        assert ((y.numpy() if own else ours.array) == wanted[index]).all()
        assert (engine.run({"x": xs[index]})["y"] == wanted[index]).all()


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


def test_results_are_the_engines_and_are_overwritten(engine: Engine) -> None:
    first, second = x_of(engine), x_of(engine) * 2
    y = engine.run({"x": Interface(first)})["y"]
    assert (y.numpy() == expected(engine, first)).all()
    assert y.__cuda_array_interface__["stream"] == engine.device.stream
    again = engine.run({"x": Interface(second)}, stream=5)["y"]
    assert again is y
    assert y.__cuda_array_interface__["stream"] == 5
    assert (y.numpy() == expected(engine, second)).all()


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


def test_uploaded_inputs_run_without_another_library(engine: Engine) -> None:
    x = x_of(engine)
    uploaded = engine.upload({"x": x})
    assert (engine.run(uploaded)["y"].numpy() == expected(engine, x)).all()


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


def test_sizes_take_turns_on_one_arena(engine: Engine) -> None:
    for batch in (1, 5, 2, 7, 1):
        x, y = x_of(engine, batch), y_of(batch)
        engine.run({"x": Interface(x)}, outputs={"y": Interface(y)})
        assert (y == expected(engine, x)).all()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda x: Interface(x.astype(np.float64)), "'x' has type float64, expected fp32"),
        (lambda x: Interface(x[..., :6]), "'x' is not dense"),
        (lambda x: Interface(aligned(x, 4)), "no multiple of 16 bytes"),
        (lambda x: Interface(x[0]), r"'x' has shape \[3, 9, 7\]"),
        (lambda x: Interface(x, typestr="<f4", mask=object()), "cannot be shared: it has a mask"),
        (lambda x: Dlpack(x, ordinal=1), "lies on GPU 1, the engine on GPU 0"),
        (lambda x: x, "'x' is a ndarray on the host"),
    ],
)
def test_refuses_arrays_that_it_would_have_to_copy(
    engine: Engine, change: Any, reason: str
) -> None:
    x = x_of(engine)
    with pytest.raises(EngineError, match=reason):
        engine.run({"x": change(x)}, outputs={"y": Interface(y_of())})


def test_refuses_outputs_that_do_not_fit(engine: Engine) -> None:
    x = Interface(x_of(engine))
    for y, reason in [
        ({"y": Interface(y_of(2))}, r"'y' has shape \[2, 5\], expected .* with {'batch': 3}"),
        (
            {"z": Interface(y_of())},
            r"outputs do not fit the plan: missing \['y'\], unknown \['z'\]",
        ),
        ({}, r"outputs do not fit the plan: missing \['y'\], unknown \[\]"),
        (dict.fromkeys("yz", Interface(y_of())), r"missing \[\], unknown \['z'\]"),
        ({"y": y_of()}, "'y' is a ndarray on the host"),
        ({"y": Interface(y_of(), data=(256, True))}, "'y' may not be written to"),
    ]:
        with pytest.raises(EngineError, match=reason):
            engine.run({"x": x}, outputs=y)


def test_refuses_outputs_in_the_memory_of_inputs(engine: Engine) -> None:
    x = x_of(engine)
    y = np.ndarray((3, 5), np.float32, x.data, offset=64)
    with pytest.raises(EngineError, match="'x' and 'y' share memory"):
        engine.run({"x": Interface(x)}, outputs={"y": Interface(y)})


def test_refuses_memory_that_is_no_gpus(engine: Engine, device: Streams) -> None:
    x = x_of(engine)
    device.elsewhere = {x.ctypes.data: None}
    with pytest.raises(EngineError, match="'x' lies in no GPU's memory"):
        engine.run({"x": Interface(x)})


def test_refuses_what_is_no_stream(engine: Engine) -> None:
    with pytest.raises(EngineError, match="str is no CUDA stream"):
        engine.run({"x": Interface(x_of(engine))}, stream="default")


def test_the_cpu_refuses_arrays_and_streams_of_a_gpu(small_plan: Path) -> None:
    with Engine(read_plan(small_plan), Emulator()) as engine:
        x = x_of(engine)
        for inputs, stream in [({"x": Interface(x)}, None), ({"x": x}, 5)]:
            with pytest.raises(EngineError, match="uses no arrays or streams of a GPU") as raised:
                engine.run(inputs, stream=stream)
            assert "device='gpu'" in raised.value.fix
        with pytest.raises(EngineError, match="uses no arrays"):
            engine.upload({"x": x})


SHARED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 8] x) => (float[batch, 8] y, float[batch, 2, 4] z)
<int64[3] shape = {-1, 2, 4}>
{ y = Relu(x)  z = Reshape(y, shape) }
"""


def test_outputs_that_share_memory_inside_are_copied_on_the_stream(
    device: Streams, tmp_path: Path
) -> None:
    model, plan = tmp_path / "shared.onnx", tmp_path / "shared.plan"
    onnx.save(onnx.parser.parse_model(SHARED), model)
    optimize(model, plan, target="h200", check=False)
    x = aligned(np.random.default_rng(0).standard_normal((3, 8), np.float32))
    y, z = aligned(np.empty_like(x)), aligned(np.empty((3, 2, 4), np.float32))
    with Engine(read_plan(plan), device) as engine:
        engine.run({"x": Interface(x)}, outputs={"y": Interface(y), "z": Interface(z)}, stream=5)
    assert (y == np.maximum(x, 0)).all()
    assert (z.ravel() == y.ravel()).all()
    assert ("copy", 5) in device.log


def test_threads_that_share_an_engine_take_turns(engine: Engine) -> None:
    inputs = [x_of(engine, batch) for batch in (1, 2, 3, 4)]
    wanted = [expected(engine, x) for x in inputs]
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(5):
            if not (engine.run({"x": inputs[index]})["y"] == wanted[index]).all():
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


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


def test_a_plan_for_another_gpu_is_refused_with_the_fix(small_plan: Path) -> None:
    class Older(Streams):
        name = "NVIDIA A100 (sm_80)"
        capability = (8, 0)

    reason = r"compiled for sm_90a, and the GPU is NVIDIA A100 \(sm_80\)"
    with pytest.raises(EngineError, match=reason) as raised:
        Engine(read_plan(small_plan), Older())
    assert "--target auto" in raised.value.fix
