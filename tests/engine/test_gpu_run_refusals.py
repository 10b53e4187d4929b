"""Arrays, streams and plans that an engine refuses, with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.devices.device_arrays import Dlpack, Interface, aligned, x_of, y_of
from support.devices.stream_device import Streams

from wpk.emulator import Emulator
from wpk.engine import Engine
from wpk.errors import EngineError
from wpk.plan.plan_file import read_plan


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda x: Interface(x.astype(np.float64)), "'x' has type fp64, expected fp32"),
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


def test_a_plan_for_another_gpu_is_refused_with_the_fix(small_plan: Path) -> None:
    class Older(Streams):
        name = "NVIDIA A100 (sm_80)"
        capability = (8, 0)

    reason = r"compiled for sm_90a, and the GPU is NVIDIA A100 \(sm_80\)"
    with pytest.raises(EngineError, match=reason) as raised:
        Engine(read_plan(small_plan), Older())
    assert "--target auto" in raised.value.fix
