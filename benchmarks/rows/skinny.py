"""Products of few rows in fp16, which take as long as their matrix takes to come: gemm_skinny beside cuBLAS.

A network is a chain of such products, from k to n features and back, with ReLU between them (product_chain.py). Its
matrices are more than L2 holds where they are large: each inference reads them from global memory. Of each side, which is
gemm_skinny or all other templates, the dozen schedules that the models like best are compiled together and timed, there
and back apart; then the best of each side and PyTorch, whose products are cuBLAS's, in turns. All are CUDA graphs.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from subjects.product_chain import WAYS, ProductChain, Sizes, in_float64

from rows.base import Context, Outcome, Row, RowError, microseconds
from rows.networks import Median
from rows.side_by_side import time_starts
from rows.torch_baselines import WARM_UPS
from wpk.backends import open_gpu
from wpk.build import CompilePool, KernelCache
from wpk.device import CudaDevice, Patience, Subject, time_side_by_side
from wpk.execution import KernelImage, Replay
from wpk.schedules.registry import TEMPLATES
from wpk.search.models.static_search import Finalist, shortlist_all
from wpk.targets import Target, target_of_gpu
from wpk.trial import Regime

SKINNY, OTHERS, BASELINE = "gemm_skinny", "other templates", "PyTorch"

DOZEN = 12
"""Schedules of each side that are timed, of each way."""

_ENOUGH_BYTES, _MOST_PAIRS = 200e6, 16
_MOST_ERROR = 2e-2
"""Of an output beside float64, of its root mean square: fp16 rounds what lies between two products."""

_GLANCE = Patience(least=5, most=15, noise=0.01, seconds=0.5)
"""With which schedules are told apart."""

Side = dict[int, list[Finalist]]
"""Schedules of a side, by way, those first that the models like best."""


def of_sizes(m: int, k: int, n: int) -> Sizes:
    """A chain so long that L2 does not hold its matrices; short enough to be one network."""
    pairs = -(-_ENOUGH_BYTES // (2 * 2 * k * n))
    return Sizes(m, k, n, int(min(_MOST_PAIRS, max(1, pairs))))


SIZES = (
    of_sizes(1, 25088, 4096),
    of_sizes(1, 4096, 4096),
    of_sizes(1, 4096, 11008),
    of_sizes(4, 4096, 4096),
    of_sizes(8, 4096, 4096),
    of_sizes(1, 1280, 1000),
    of_sizes(1, 1152, 48),
)


def rows() -> list[Row]:
    """One of each sizes."""
    claim = "products of few rows in fp16, gemm_skinny alone, beside cuBLAS and the other templates"
    return [
        Row(f"skinny.{each.m}x{each.k}x{each.n}", claim, partial(measure, each)) for each in SIZES
    ]


def measure(sizes: Sizes, context: Context) -> Outcome:
    """Compile and time the best schedules of each side on this machine's GPU, then the best of them beside PyTorch."""
    with open_gpu() as device:
        target = target_of_gpu(device.facts.name, device.facts.capability)
        sides = {SKINNY: side(sizes, target, True), OTHERS: side(sizes, target, False)}
        sources = [
            s for each in sides.values() for way in WAYS for f in each[way] for s in f.sources
        ]
        with CompilePool(target.arch, cache=KernelCache(context.store / "kernels")) as pool:
            compiling = [pool.submit(source) for source in dict.fromkeys(sources)]
            weights, x = sizes.weights(), sizes.input()
            chain = ProductChain(device, sizes, weights)
            graph = _TorchChain(weights, x, device.stream)
            right = in_float64(x, weights)
            for done in (each.result() for each in compiling):
                if done.kernel is None:
                    raise RowError(str(done.error))
                device.load(KernelImage(done.source.digest, done.source, done.kernel.cubin))
        starts: dict[str, Replay] = {}
        outputs: dict[str, NDArray[Any]] = {}
        best = {name: _best(device, chain, each) for name, each in sides.items()}
        for name, kernels in best.items():
            starts[name] = device.capture(chain.launches(kernels))
            starts[name].replay()
            outputs[name] = chain.output()
        starts[BASELINE], outputs[BASELINE] = graph, graph.output()
        samples = {name: each.seconds for name, each in time_starts(device, starts).items()}
    chosen = {
        name: [
            f"{sizes.problem(way).words()}: {each.template.name} {each.prediction.schedule}"
            for way, each in kernels.items()
        ]
        for name, kernels in best.items()
    }
    times = {name: Median.of(seconds) for name, seconds in samples.items()}
    return judge(sizes, right, outputs, times, target.global_bandwidth, chosen)


def side(sizes: Sizes, target: Target, is_skinny: bool) -> Side:
    """The schedules of gemm_skinny, or of all other templates, that the models like best."""
    templates = [each for each in TEMPLATES if (each.name == SKINNY) == is_skinny]
    return {
        way: list(shortlist_all(sizes.problem(way), templates, target).finalists(count=DOZEN))
        for way in WAYS
    }


def judge(
    sizes: Sizes,
    right: NDArray[np.float64],
    outputs: dict[str, NDArray[Any]],
    times: dict[str, Median],
    ceiling: float,
    chosen: dict[str, list[str]],
) -> Outcome:
    """Whether all are right, and what part of the bandwidth they reach.

    Args:
        sizes: What was computed.
        right: The output in float64.
        outputs: What each gave.
        times: Seconds of an inference of each.
        ceiling: Bytes a second of the GPU's memory, as its data sheet says.
        chosen: Problems and schedules of each side.
    """
    size = float(np.sqrt(np.mean(right**2)))
    errors = {name: float(np.abs(y - right).max()) / size for name, y in outputs.items()}
    wrong = [name for name, error in errors.items() if not error <= _MOST_ERROR]
    count = sizes.products
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


def _best(device: CudaDevice, chain: ProductChain, kernels: Side) -> dict[int, Finalist]:
    """The fastest of each way, by chains of that way alone."""
    best = {}
    for way, asked in kernels.items():
        replays = [device.capture(chain.launches({way: each})) for each in asked]
        timed = [Subject(each, 1, each.replay, Regime.WARM) for each in replays]
        seconds = [timing.median for timing in time_side_by_side(device, timed, _GLANCE)]
        best[way] = asked[int(np.argmin(seconds))]
    return best


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
