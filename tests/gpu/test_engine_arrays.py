"""An engine beside PyTorch, CuPy and pycuda: their arrays, their streams, several threads."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
import pytest
from subjects import exported

import wpk
from wpk.cli.main import main
from wpk.device import CudaDevice, differences
from wpk.engine import Engine, random_inputs
from wpk.errors import EngineError
from wpk.plan.plan_file import read_plan
from wpk.targets.registry import find_target

pytestmark = pytest.mark.gpu

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 64] x) => (float[batch, 64] y) { t = MatMul(x, m)  y = Relu(t) }
"""
BFLOAT = """
<ir_version: 8, opset_import: ["" : 17]>
g (bfloat16[batch, 64] x) => (bfloat16[batch, 64] y) { y = Relu(x) }
"""
M = np.random.default_rng(0).standard_normal((64, 64), np.float32)
TOLERANCE = 64 * 2.0**-24 * 64
"""Of 64 products of numbers below 8, summed in fp32."""

SLEEP_CYCLES = 40_000_000
"""About 20 ms of a clock of 2 GHz: far longer than to start a run."""


def plan_of(text: str, folder: Path, target: str = "h200") -> Path:
    model, plan = folder / "model.onnx", folder / "model.plan"
    proto = onnx.parser.parse_model(text)
    if "m)" in text:
        proto.graph.initializer.append(onnx.numpy_helper.from_array(M, "m"))
    onnx.save(proto, model)
    options = ["--target", target, "--check", "off", "--search", "static", "--precision", "fp32"]
    assert main(["optimize", str(model), "-o", str(plan), *options]) == 0
    return plan


@pytest.fixture(name="plan", scope="module")
def fixture_plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plan_of(TEXT, tmp_path_factory.mktemp("plan"))


@pytest.fixture(name="torch", scope="module")
def fixture_torch() -> Any:
    return pytest.importorskip("torch")


def x_of(batch: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((batch, 64), np.float32)


def is_right(y: np.ndarray, x: np.ndarray) -> bool:
    return bool(np.abs(y - np.maximum(x.astype(np.float64) @ M, 0)).max() < TOLERANCE)


def test_pytorchs_tensors_are_used_where_they_lie(cuda: CudaDevice, plan: Path, torch: Any) -> None:
    with Engine(read_plan(plan), cuda) as engine:
        for batch in (1, 7, 300, 7):
            x = x_of(batch, batch)
            given = torch.from_numpy(x).cuda()
            own = torch.from_dlpack(engine.run({"x": given})["y"])
            assert is_right(own.cpu().numpy(), x)
            y = torch.full((batch, 64), float("nan"), device="cuda")
            assert engine.run({"x": given}, outputs={"y": y})["y"] is y
            assert is_right(y.cpu().numpy(), x)


def test_cupys_and_pycudas_arrays_are_used_where_they_lie(cuda: CudaDevice, plan: Path) -> None:
    cupy = pytest.importorskip("cupy")
    from pycuda import gpuarray

    x = x_of(5)
    with Engine(read_plan(plan), cuda) as engine:
        y = engine.run({"x": cupy.asarray(x)})["y"]
        assert is_right(cupy.asnumpy(cupy.asarray(y)), x)
        with cuda.active():
            given, target = gpuarray.to_gpu(x), gpuarray.zeros((5, 64), np.float32)
            engine.run({"x": given}, outputs={"y": target})
            engine.synchronize()
            assert is_right(target.get(), x)
            del given, target


def test_bfloat16_goes_through_dlpack(cuda: CudaDevice, tmp_path: Path, torch: Any) -> None:
    x = torch.randn(3, 64, device="cuda").to(torch.bfloat16)
    with Engine(read_plan(plan_of(BFLOAT, tmp_path)), cuda) as engine:
        y = torch.from_dlpack(engine.run({"x": x})["y"])
        assert y.dtype is torch.bfloat16
        assert torch.equal(y, torch.relu(x))


@pytest.mark.timed
def test_a_run_is_asynchronous_on_the_callers_stream(
    cuda: CudaDevice, plan: Path, torch: Any
) -> None:
    x = torch.from_numpy(x_of(7)).cuda()
    late, y = torch.zeros_like(x), torch.zeros_like(x)
    stream = torch.cuda.Stream()
    with Engine(read_plan(plan), cuda) as engine:
        engine.run({"x": late}, outputs={"y": y}, stream=stream)  # bound
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(SLEEP_CYCLES)
            late.copy_(x)
            begun = time.perf_counter()
            engine.run({"x": late}, outputs={"y": y}, stream=stream)
            seconds = time.perf_counter() - begun
            assert not stream.query()
            after = y.clone()
        torch.cuda.synchronize()
        assert seconds < 2e-3
        assert is_right(after.cpu().numpy(), x_of(7))


def test_without_a_stream_it_takes_turns_with_the_default_stream(
    cuda: CudaDevice, plan: Path, torch: Any
) -> None:
    x = torch.from_numpy(x_of(7)).cuda()
    late, y = torch.zeros_like(x), torch.zeros_like(x)
    with Engine(read_plan(plan), cuda) as engine:
        engine.run({"x": late}, outputs={"y": y})
        torch.cuda._sleep(SLEEP_CYCLES)
        late.copy_(x)
        engine.run({"x": late}, outputs={"y": y})
        assert is_right(y.clone().cpu().numpy(), x_of(7))


def test_a_tensor_of_another_stream_is_waited_for_and_so_is_a_result(
    cuda: CudaDevice, plan: Path, torch: Any
) -> None:
    x = torch.from_numpy(x_of(7)).cuda()
    late = torch.zeros_like(x)
    writer, reader = torch.cuda.Stream(), torch.cuda.Stream()
    with Engine(read_plan(plan), cuda) as engine:
        engine.run({"x": late})
        torch.cuda.synchronize()
        with torch.cuda.stream(writer):
            torch.cuda._sleep(SLEEP_CYCLES)
            late.copy_(x)
            result = engine.run({"x": late})["y"]
        with torch.cuda.stream(reader):
            y = torch.from_dlpack(result).clone()
        reader.synchronize()
        assert is_right(y.cpu().numpy(), x_of(7))


def test_runs_on_two_streams_do_not_share_the_arena_at_once(
    cuda: CudaDevice, plan: Path, torch: Any
) -> None:
    streams = [torch.cuda.Stream() for _ in range(2)]
    xs = [torch.from_numpy(x_of(2000, seed)).cuda() for seed in range(2)]
    ys = [torch.zeros_like(x) for x in xs]
    torch.cuda.synchronize()
    with Engine(read_plan(plan), cuda) as engine:
        for _ in range(50):
            for stream, x, y in zip(streams, xs, ys, strict=True):
                engine.run({"x": x}, outputs={"y": y}, stream=stream)
        engine.synchronize()
    for seed, y in enumerate(ys):
        assert is_right(y.cpu().numpy(), x_of(2000, seed))


def test_two_threads_with_two_engines_are_right(plan: Path, torch: Any) -> None:
    engines = [wpk.load(plan, "gpu") for _ in range(2)]
    wrong: list[str] = []

    def work(index: int, engine: Engine) -> None:
        try:
            for step in range(100):
                x = x_of(1 + step % 5, 1000 * index + step)
                if step % 2:
                    y = engine.run({"x": x})["y"]
                else:
                    given = torch.from_numpy(x).cuda()
                    y = torch.from_dlpack(engine.run({"x": given})["y"]).cpu().numpy()
                if not is_right(y, x):
                    wrong.append(f"thread {index}, step {step}")
        except Exception as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(engines)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for engine in engines:
        engine.close()
    assert not wrong


def test_two_engines_of_one_device_in_two_threads_are_right(cuda: CudaDevice, plan: Path) -> None:
    engines = [Engine(read_plan(plan), cuda) for _ in range(2)]
    wrong: list[int] = []

    def work(index: int) -> None:
        for batch in range(1, 40):  # a new size each time: captures and launches meet
            x = x_of(batch, index)
            if not is_right(engines[index].run({"x": x})["y"], x):
                wrong.append(batch)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for engine in engines:
        engine.close()
    assert not wrong


def test_closing_in_any_order_is_safe(plan: Path) -> None:
    """In a process of its own, because what goes wrong would take this one with it."""
    program = f"""
        import threading
        from pathlib import Path

        import numpy as np

        import wpk
        from wpk.engine import Engine
        from wpk.plan.plan_file import read_plan
        from wpk.backends import open_gpu

        bundle = read_plan(Path({str(plan)!r}))
        x = np.ones((3, 64), np.float32)
        device = open_gpu()
        first, second = Engine(bundle, device), Engine(bundle, device)
        kept = first.run(first.upload({{"x": x}}))["y"]
        second.run({{"x": x}})
        device.close()
        first.close()
        del kept
        second.close()
        made = []
        thread = threading.Thread(target=lambda: made.append(wpk.load({str(plan)!r}, "gpu")))
        thread.start()
        thread.join()  # a context left on the thread's stack would end the process here
        engine = made.pop()
        y = engine.run({{"x": x}})["y"]
        closer = threading.Thread(target=engine.close)
        closer.start()
        closer.join()
        left_open = wpk.load({str(plan)!r}, "gpu")
        last = left_open.run(left_open.upload({{"x": x}}))["y"]
        assert (last.numpy() == y).all()
        print("done")
    """
    command = [sys.executable, "-P", "-c", textwrap.dedent(program)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
    assert "PyCUDA" not in ended.stderr


def test_processes_that_close_nothing_end_without_a_crash(plan: Path) -> None:
    """Several, because what they did wrong once ended one in ten."""
    program = f"""
        import numpy as np
        import wpk
        engine = wpk.load({str(plan)!r}, "gpu")
        engine.run({{"x": np.ones((3, 64), np.float32)}})
        result = engine.run(engine.upload({{"x": np.ones((3, 64), np.float32)}}))
    """
    command = [sys.executable, "-P", "-c", textwrap.dedent(program)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(10)]
    said = [process.communicate(timeout=120)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 10, said


def test_the_gpu_is_what_the_table_says(cuda: CudaDevice) -> None:
    assert cuda.capability == (9, 0)
    assert differences(cuda.facts, find_target("h200")) == ()
    assert re.fullmatch(r"\d{3,}\.\d+(\.\d+)?", cuda.facts.driver)
    assert int(cuda.facts.cuda_api.partition(".")[0]) >= 12


def test_a_plan_for_another_gpu_is_refused_or_goes_to_the_cpu(tmp_path: Path) -> None:
    plan = plan_of(TEXT, tmp_path, target="a100")
    with pytest.raises(EngineError, match=r"compiled for sm_80, and the GPU is NVIDIA H200"):
        wpk.load(plan, "gpu")
    with wpk.load(plan, "auto") as engine:
        assert engine.device.executes_source


def test_refuses_tensors_on_the_host_and_slices(cuda: CudaDevice, plan: Path, torch: Any) -> None:
    x = torch.zeros(4, 64, device="cuda")
    with Engine(read_plan(plan), cuda) as engine:
        for given, reason in [
            (torch.zeros(2, 128, device="cuda")[:, ::2], "is not dense"),
            (torch.zeros(65, device="cuda")[1:].view(1, 64), "no multiple of 16 bytes"),
            (x.double(), "expected fp32"),
        ]:
            with pytest.raises(EngineError, match=reason):
                engine.run({"x": given}, outputs={"y": torch.zeros(4, 64, device="cuda")})
        with pytest.raises(EngineError, match="on the host"):
            engine.run({"x": torch.zeros(4, 64)}, stream=torch.cuda.current_stream())


def test_the_example_of_the_documentation_runs(tmp_path: Path, torch: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "using.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[1, 3, 224, 224] input) => (float[1, 3, 224, 224] output) {
            output = Relu (input)
        }
    """
    plan_of(text, tmp_path)
    code += "\nassert scores.shape == (1, 3, 224, 224)"
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "MiB on the device" in done.stdout


@pytest.mark.timed
def test_running_costs_little_more_than_its_graph(
    cuda: CudaDevice, tmp_path: Path, torch: Any, record: Callable[[str, object], None]
) -> None:
    name = next(n for n in exported.model_names() if "resnet18" in n)
    model, plan = tmp_path / "resnet18.onnx", tmp_path / "resnet18.plan"
    onnx.save(exported.refill(name), model)
    options = ["--target", "h200", "--check", "off", "--search", "static", "--precision", "fp16"]
    assert main(["optimize", str(model), "-o", str(plan), *options]) == 0
    with Engine(read_plan(plan), cuda) as engine:
        arrays = random_inputs(engine.plan, 0)
        tensors = {name: torch.from_numpy(array).cuda() for name, array in arrays.items()}
        outputs = {n: torch.from_dlpack(a).clone() for n, a in engine.run(tensors).items()}
        stream = torch.cuda.Stream()
        uploaded = engine.upload(arrays)
        ways: dict[str, Callable[[], object]] = {
            "own": lambda: engine.run(uploaded),
            "torch": lambda: engine.run(tensors, outputs=outputs),
            "torch_stream": lambda: engine.run(tensors, outputs=outputs, stream=stream),
        }
        host: dict[str, list[float]] = {name: [] for name in ways}
        calls: dict[str, list[float]] = {name: [] for name in ways}
        events: list[float] = []
        replay = engine.bind().replay
        for way in ways.values():
            way()
        for _ in range(300):
            events.append(cuda.seconds(replay))
            for name, way in ways.items():
                begun = time.perf_counter()
                way()
                called = time.perf_counter()
                engine.synchronize()
                host[name].append(time.perf_counter() - begun)
                calls[name].append(called - begun)
    gpu = median(events)
    figures = {name: {"host": median(host[name]), "call": median(calls[name])} for name in ways}
    record("overhead.resnet18.fp16", {"gpu": gpu, **figures})
    for name, figure in figures.items():
        assert figure["host"] <= gpu + max(20e-6, 0.03 * gpu), (name, gpu, figures)
