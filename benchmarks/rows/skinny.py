"""Products of few rows in fp16, which take as long as their matrix takes to come: gemm_skinny beside cuBLAS.

A network is a chain of such products, from k to n features and back, with ReLU between them, as in decoders (up and
down) and squeeze-excites. Its matrices are more than L2 holds where they are large: each inference reads them from
global memory. Timed in turns, as CUDA graphs: wpk with gemm_skinny alone of its templates, wpk with the others alone, and
PyTorch, whose products are cuBLAS's. cuDNN competes in both plans: `chosen` says who computes what.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from rows.base import Context, Outcome, Row, microseconds
from rows.networks import Median
from rows.side_by_side import time_starts
from rows.sketch import Sketch
from rows.torch_baselines import WARM_UPS
from wpk.backends import open_gpu
from wpk.engine import Engine
from wpk.execution import Replay
from wpk.plan.plan_file import read_plan
from wpk.targets.registry import find_target

SKINNY, OTHERS, BASELINE = "gemm_skinny", "other templates", "PyTorch"

_RIVALS = ("gemm_mma", "gemm_simt", "gemm_wgmma")
_ENOUGH_BYTES, _MOST_PAIRS = 200e6, 16
_MOST_ERROR = 2e-2
"""Of an output beside float64, of its root mean square: fp16 rounds what lies between two products."""


@dataclass(frozen=True)
class Sizes:
    """Rows, features that are summed, and features that come of it."""

    m: int
    k: int
    n: int

    @property
    def pairs(self) -> int:
        """Products there and back, so many that L2 does not hold them; few enough to be one network."""
        each = 2 * 2 * self.k * self.n
        return int(min(_MOST_PAIRS, max(1, -(-_ENOUGH_BYTES // each))))

    @property
    def bytes(self) -> int:
        """Of all matrices."""
        return self.pairs * 2 * 2 * self.k * self.n

    def weights(self) -> list[NDArray[np.float16]]:
        """The matrices, each (inputs, outputs): what passes a ReLU behind them keeps its size."""
        generator = np.random.default_rng(0)
        shapes = [(self.k, self.n), (self.n, self.k)] * self.pairs
        return [
            (generator.standard_normal(shape, np.float32) * (2 / shape[0]) ** 0.5).astype(
                np.float16
            )
            for shape in shapes
        ]

    def write(self, path: Path) -> None:
        """The chain as ONNX."""
        sketch = Sketch("skinny")
        x = sketch.input("x", (self.m, self.k), TensorProto.FLOAT16)
        for place, weight in enumerate(self.weights()):
            y = sketch.node("MatMul", f"product{place}", [x, sketch.constant(f"w{place}", weight)])
            x = sketch.node("Relu", f"relu{place}", [y])
        sketch.output(x, (self.m, self.k), TensorProto.FLOAT16)
        sketch.save(path)


SIZES = (
    Sizes(1, 25088, 4096),
    Sizes(1, 4096, 4096),
    Sizes(1, 4096, 11008),
    Sizes(4, 4096, 4096),
    Sizes(8, 4096, 4096),
    Sizes(1, 1280, 1000),
    Sizes(1, 1152, 48),
)


def rows() -> list[Row]:
    """One of each sizes."""
    claim = "products of few rows in fp16, gemm_skinny alone, beside cuBLAS and the other templates"
    return [
        Row(f"skinny.{each.m}x{each.k}x{each.n}", claim, partial(measure, each)) for each in SIZES
    ]


def measure(sizes: Sizes, context: Context) -> Outcome:
    """Tune both plans on this machine's GPU, and time them beside PyTorch."""
    model = context.folder / "skinny.onnx"
    sizes.write(model)
    plans = {
        SKINNY: _tuned(model, context.folder / "skinny.plan", _RIVALS, context),
        OTHERS: _tuned(model, context.folder / "others.plan", (SKINNY,), context),
    }
    x = np.random.default_rng(1).standard_normal((sizes.m, sizes.k)).astype(np.float16)
    starts: dict[str, Replay] = {}
    outputs: dict[str, NDArray[Any]] = {}
    with ExitStack() as held:
        device = held.enter_context(open_gpu())
        for name, plan in plans.items():
            engine = held.enter_context(Engine(read_plan(plan), device))
            (outputs[name],) = engine.run({"x": x}).values()
            starts[name] = engine.bind().replay
        graph = _TorchChain(sizes.weights(), x, device.stream)
        starts[BASELINE] = graph
        outputs[BASELINE] = graph.output()
        samples = {name: each.seconds for name, each in time_starts(device, starts).items()}
    bundle = read_plan(plans[SKINNY]).plan
    chosen = sorted({f"{s.operator.problem.words()}: {s.candidate}" for s in bundle.steps})
    times = {name: Median.of(seconds) for name, seconds in samples.items()}
    ceiling = find_target(bundle.target).global_bandwidth
    return judge(sizes, _right(sizes, x), outputs, times, ceiling, chosen)


def judge(
    sizes: Sizes,
    right: NDArray[np.float64],
    outputs: dict[str, NDArray[Any]],
    times: dict[str, Median],
    ceiling: float,
    chosen: list[str],
) -> Outcome:
    """Whether all are right, and what part of the bandwidth they reach.

    Args:
        sizes: What was computed.
        right: The output in float64.
        outputs: What each gave.
        times: Seconds of an inference of each.
        ceiling: Bytes a second of the GPU's memory, as its data sheet says.
        chosen: Problems and schedules of gemm_skinny's plan.
    """
    size = float(np.sqrt(np.mean(right**2)))
    errors = {name: float(np.abs(y - right).max()) / size for name, y in outputs.items()}
    wrong = [name for name, error in errors.items() if not error <= _MOST_ERROR]
    count = 2 * sizes.pairs
    shares = {n: sizes.bytes / t.median_seconds / ceiling for n, t in times.items()}
    told = ", ".join(
        f"{name} {microseconds(t.median_seconds / count)} ({shares[name]:.0%})"
        for name, t in times.items()
    )
    speedup = times[SKINNY].speedup_over(times[BASELINE])
    summary = (
        f"a product of {count}: {told} of {ceiling / 1e12:.2f} TB/s; {speedup.median:.2f} times as fast as "
        f"cuBLAS{f'; WRONG: {wrong}' if wrong else ''}"
    )
    figures = {
        "products": count,
        "bytes_of_weights": sizes.bytes,
        "times": {name: asdict(each) for name, each in times.items()},
        "share_of_bandwidth": shares,
        "speedup": asdict(speedup),
        "errors": errors,
        "chosen": chosen,
    }
    return Outcome(not wrong, summary, figures)


def _tuned(model: Path, plan: Path, left_out: tuple[str, ...], context: Context) -> Path:
    without = [word for name in left_out for word in ("--skip-template", name)]
    how = ["--precision", "fp16", "--effort", context.effort, "--budget", "60s"]
    context.wpk("optimize", model, "-o", plan, *how, "--cache", context.store, *without)
    return plan


def _right(sizes: Sizes, x: NDArray[np.float16]) -> NDArray[np.float64]:
    y = x.astype(np.float64)
    for weight in sizes.weights():
        y = np.maximum(y @ weight.astype(np.float32).astype(np.float64), 0.0)
    return y


class _TorchChain:
    """The chain of torch's own products, captured in a CUDA graph that is started on a given stream."""

    def __init__(
        self, weights: list[NDArray[np.float16]], x: NDArray[np.float16], stream: int
    ) -> None:
        """Place the weights as `torch.nn.Linear` keeps them, warm up and capture."""
        import torch

        self._weights = [torch.from_numpy(np.ascontiguousarray(w.T)).cuda() for w in weights]
        self._x = torch.from_numpy(x).cuda()
        self._stream = torch.cuda.ExternalStream(stream)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                self._computed()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self._graph):
            self._y = self._computed()

    def replay(self) -> None:
        """Start it once."""
        import torch

        with torch.cuda.stream(self._stream):
            self._graph.replay()

    def output(self) -> NDArray[np.float16]:
        """What it gives."""
        import torch

        self.replay()
        torch.cuda.synchronize()
        array: NDArray[np.float16] = self._y.cpu().numpy()
        return array

    def _computed(self) -> Any:
        from torch.nn import functional

        x = self._x
        for weight in self._weights:
            x = functional.relu(functional.linear(x, weight))
        return x
