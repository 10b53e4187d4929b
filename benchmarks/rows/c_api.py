"""Plans executed through the C API, beside the Python engine: the same bits, as fast, sooner ready, in less memory."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median

from subjects.c_engine import INPUT, OUTPUT, CEngine, built

from rows.base import Context, Outcome, Row, RowError
from rows.engines import CUDNN, cudnn_plan, static_plan
from rows.networks import Median
from rows.side_by_side import time_starts
from wpk.backends import open_gpu
from wpk.device import CudaDevice
from wpk.device.graph import CudaGraph
from wpk.engine import Engine, random_inputs
from wpk.plan.plan import PlanBundle
from wpk.plan.plan_file import read_plan

NETWORKS = ("resnet50", "distilbert", "inception_v3")

INPUTS = 3

COMPARED = 4 * INPUTS
"""Outputs: by two orders of opening, and by itself and in a caller's graph."""

SLOWER, START, MEMORY = 1.01, 0.2, 1.2
"""Most of: time over Python's, start-up over Python's, host memory over the weights."""

SAME_BITS = "the C API gives Python's bits, within 1 % of its time, where cuDNN computes much"

STARTS = 5
"""Of each program, in turns, of which the median counts."""

_POISON = 255

_RESULT = "first_result_ms"

_PYTHON = """
import sys, wpk
from wpk.engine import random_inputs
with wpk.load(sys.argv[1], device="gpu", trust=True) as engine:
    engine.run(random_inputs(engine.plan, 0))
    print("first_result_ms", flush=True)
"""


def rows() -> list[Row]:
    """One of each network."""
    claim = (
        "the C API gives Python's bits, within 1 % of its time; ready in a fifth, in 1.2 weights"
    )
    return [
        *(Row(f"c_api.{name}.fp16", claim, partial(_measure, name)) for name in NETWORKS),
        *(
            Row(f"c_api.cudnn.{name}.fp16", SAME_BITS, partial(_measure_cudnn, name))
            for name in CUDNN
        ),
    ]


def _measure(name: str, context: Context) -> Outcome:
    return _compare(static_plan(name, context)[1], with_start=True)


def _measure_cudnn(name: str, context: Context) -> Outcome:
    return _compare(cudnn_plan(name, context), with_start=False)


def _compare(path: Path, *, with_start: bool) -> Outcome:
    """With start-up and memory, or told only: opening cuDNN takes both, in either language."""
    bundle = read_plan(path)
    with open_gpu() as device:
        memory = _host_memory(path, bundle, device)
        wrong, times = _side_by_side(path, bundle, device)
    starts = _starts(path)
    slower = times["c"].median_seconds / times["python"].median_seconds
    captured = times["c, captured"].median_seconds / times["python"].median_seconds
    start, used = starts["c"] / starts["python"], memory / bundle.plan.memory.weight_bytes
    figures = {
        "compared": COMPARED,
        "wrong": wrong,
        "times": {each: asdict(median) for each, median in times.items()},
        "start_seconds": starts,
        "host_memory_bytes": memory,
        "weight_bytes": bundle.plan.memory.weight_bytes,
    }
    summary = (
        f"{wrong} of {COMPARED} differ; time {slower:.3f} of Python's, in a caller's graph "
        f"{captured:.3f}; start {starts['c']:.2f} s, {start:.2f} of Python's; host memory {used:.2f} "
        "of the weights"
    )
    fits = max(slower, captured) <= SLOWER
    if with_start:
        fits = fits and start <= START and used <= MEMORY
    return Outcome(not wrong and fits, summary, figures)


@dataclass(frozen=True)
class _Memory:
    """Where the C engine's inputs and outputs lie, and their bytes."""

    inputs: list[tuple[int, int]]
    outputs: list[tuple[int, int]]


@dataclass(frozen=True)
class _Start:
    """A run of the C engine on the device's stream."""

    engine: CEngine
    stream: int

    def replay(self) -> None:
        """Start it."""
        self.engine.run(self.stream)


def _bound(engine: CEngine, bundle: PlanBundle, device: CudaDevice) -> _Memory:
    """Give an engine memory of its own, and capture."""
    arrays = random_inputs(bundle.plan, 0)
    inputs = [arrays[port.name].nbytes for port in bundle.plan.inputs]
    outputs = [_bytes(port, bundle) for port in range(len(bundle.plan.outputs))]
    memory = _Memory(*([(device.allocate(n), n) for n in sizes] for sizes in (inputs, outputs)))
    engine.bind(INPUT, [address for address, _ in memory.inputs])
    engine.bind(OUTPUT, [address for address, _ in memory.outputs])
    engine.capture()
    return memory


def _bytes(number: int, bundle: PlanBundle) -> int:
    port = bundle.plan.outputs[number]
    size = port.dtype.bytes
    for extent in port.shape:
        size *= bundle.plan.free[extent] if isinstance(extent, str) else int(str(extent))
    return size


def _side_by_side(
    path: Path, bundle: PlanBundle, device: CudaDevice
) -> tuple[int, dict[str, Median]]:
    """How many outputs differ from Python's, and the times of all three, whichever engine is opened first."""
    wrong = 0
    samples: dict[str, list[float]] = {}
    for is_first in (True, False):
        differing, seconds = _once(path, bundle, device, is_python_first=is_first)
        wrong += differing
        for name, each in seconds.items():
            samples.setdefault(name, []).extend(each)
    return wrong, {name: Median.of(tuple(seconds)) for name, seconds in samples.items()}


def _once(
    path: Path, bundle: PlanBundle, device: CudaDevice, *, is_python_first: bool
) -> tuple[int, dict[str, tuple[float, ...]]]:
    """With engines opened in an order: where their memory lies moves times."""
    wrong = 0
    with ExitStack() as stack:
        python = stack.enter_context(Engine(bundle, device)) if is_python_first else None
        c = stack.enter_context(CEngine(path))
        memory = _bound(c, bundle, device)
        python = python or stack.enter_context(Engine(bundle, device))
        start = _Start(c, device.stream)
        graph = CudaGraph(device.work_stream, lambda: c.run(device.work_stream))
        for seed in range(INPUTS):
            arrays = random_inputs(bundle.plan, seed)
            expected = python.run(arrays)
            for (address, _), port in zip(memory.inputs, bundle.plan.inputs, strict=True):
                device.write(address, arrays[port.name])
            for replay in (start, graph):
                for place in memory.outputs:
                    device.fill(*place, _POISON)
                replay.replay()
                found = [device.read(*place).tobytes() for place in memory.outputs]
                wrong += found != [expected[p.name].tobytes() for p in bundle.plan.outputs]
        subjects = {"python": python.bind().replay, "c": start, "c, captured": graph}
        timings = time_starts(device, subjects)
        graph.close()
    return wrong, {name: timing.seconds for name, timing in timings.items()}


def _host_memory(path: Path, bundle: PlanBundle, device: CudaDevice) -> int:
    """Most bytes of this process that an engine of the C API adds while it is opened, made ready and run."""
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak
    before = _status("VmRSS")
    with CEngine(path) as engine:
        _bound(engine, bundle, device)
        engine.run(device.stream)
        device.synchronize()
        return _status("VmHWM") - before


def _status(field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.M)
    return 1024 * int(found[1]) if found else 0


def _starts(path: Path) -> dict[str, float]:
    """Seconds until programs that read the plan and run it have their first result."""
    programs = {
        "c": [str(built("run", "wpk-run")), str(path)],
        "python": [sys.executable, "-c", _PYTHON, str(path)],
    }
    found: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(STARTS):
        for name, command in programs.items():
            found[name].append(_seconds_to_result(command))
    return {name: median(seconds) for name, seconds in found.items()}


def _seconds_to_result(command: list[str]) -> float:
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        seconds = [time.perf_counter() - begun for line in program.stdout if _RESULT in line]
    if program.returncode or not seconds:
        raise RowError(f"exit code {program.returncode} of {command[0]}")
    return seconds[0]
