"""A small template, problems, and a compiler that answers from rules: no GPU, no NVRTC."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from subjects.problems import matmul

from wpk.build import Compilation, CompiledKernel, KernelResources
from wpk.dtypes import Precision
from wpk.errors import CompileError
from wpk.kernel_source import KernelSource
from wpk.launch import InputArgument, Launch, OutputArgument
from wpk.performance.work import Columns, SharedAccess, Work
from wpk.problems import Matmul
from wpk.schedules.limit import Limit
from wpk.schedules.template import Schedule, ScheduleTemplate
from wpk.targets.target import Target
from wpk.trial import Status

_THREADS = "(block_m * block_n // 64)"


@dataclass(frozen=True)
class TiledSchedule(Schedule):
    """Tiles of a product; ``padded`` rows of shared memory keep its columns apart."""

    block_m: int
    block_n: int
    block_k: int
    padded: int

    @property
    def threads(self) -> int:
        return self.block_m * self.block_n // 64


class TiledProduct(ScheduleTemplate[Matmul, TiledSchedule]):
    """A product on the ordinary cores: 8 x 8 outputs a thread."""

    name = "tiled"
    version = 1
    problem_type = Matmul
    schedule_type = TiledSchedule

    def __init__(self, sizes: Sequence[int] = (8, 16, 32, 64, 128, 256), name: str = "tiled"):
        self.sizes = tuple(sizes)
        self.name = name  # type: ignore[misc] - two of them compete in a test

    def why_not(self, problem: Matmul, target: Target) -> str | None:
        return "k must be even" if problem.k % 2 else None

    def axes(self, problem: Matmul, target: Target) -> dict[str, tuple[int, ...]]:
        sizes = self.sizes
        return {"block_m": sizes, "block_n": sizes, "block_k": (8, 16, 32), "padded": (0, 1)}

    def limits(self, problem: Matmul) -> Sequence[Limit]:
        return (Limit(f"{_THREADS} > 0 and {_THREADS} % 32 == 0", "a block has whole warps"),)

    def target_limits(self, problem: Matmul, target: Target) -> Sequence[Limit]:
        threads, shared = target.max_threads_block, target.max_shared_block
        return (
            Limit(f"threads <= {threads}", f"a block of the target has at most {threads} threads"),
            Limit(f"shared_bytes <= {shared}", f"a block of the target has {shared} bytes"),
        )

    def work(self, problem: Matmul, columns: Columns, target: Target) -> Work:
        m, n = columns["block_m"].astype(float), columns["block_n"].astype(float)
        loaded = (m + n) * problem.k * 4 / target.transaction_bytes
        return Work(
            unit=None,
            element_bytes=4,
            blocks=np.ceil(problem.m.value / m) * np.ceil(problem.n / n),
            threads=_threads(columns).astype(float),
            shared_bytes=_shared(columns).astype(float),
            registers=np.full(m.shape, 100.0),
            block_flops=2.0 * m * n * problem.k,
            thread_flops=np.full(m.shape, 2.0 * 64 * problem.k),
            block_transactions=loaded,
            thread_loads=np.full(m.shape, 16.0 * problem.k),
            store_bytes=m * n * 4,
            steps=np.ceil(problem.k / columns["block_k"]),
            stages=np.full(m.shape, 2.0),
        )

    def shared_accesses(self, problem: Matmul, schedule: TiledSchedule) -> Sequence[SharedAccess]:
        row = 4 * (32 + schedule.padded)
        return (SharedAccess(tuple(row * lane for lane in range(32)), 4, 8),)

    def instantiate(self, problem: Matmul, schedule: TiledSchedule) -> tuple[KernelSource, ...]:
        return (KernelSource(f"wpk_{self.name}", f"// {self.name} {schedule}\n"),)

    def launches(self, problem: Matmul, schedule: TiledSchedule) -> tuple[Launch, ...]:
        (source,) = self.instantiate(problem, schedule)
        grid = (-(-problem.m.value // schedule.block_m), -(-problem.n // schedule.block_n), 1)
        arguments = (InputArgument(0), InputArgument(1), OutputArgument(0))
        block = (schedule.threads, 1, 1)
        return (Launch(source.digest, source.entry, grid, block, 0, arguments),)


def _threads(columns: Columns) -> np.ndarray:
    return columns["block_m"] * columns["block_n"] // 64


def _shared(columns: Columns) -> np.ndarray:
    rows = (columns["block_m"] + columns["block_n"]) * (columns["block_k"] + columns["padded"])
    return 2 * 4 * rows


@pytest.fixture
def tiled() -> TiledProduct:
    """The template with its usual axes."""
    return TiledProduct()


@pytest.fixture
def make_tiled() -> type[TiledProduct]:
    """The template's class."""
    return TiledProduct


@pytest.fixture
def make_product() -> Callable[[int, int, int], Matmul]:
    """fp32 products of plain matrices: m, n, k."""

    def make(m: int, n: int, k: int) -> Matmul:
        return matmul(m, n, k, precision=Precision.FP32)

    return make


@dataclass
class DummyCompiler:
    """Compiles nothing; ``rule`` decides what comes of a kernel, by its text."""

    rule: Callable[[str], KernelResources | str]

    def __post_init__(self) -> None:
        self.rounds: list[list[str]] = []

    def compile(self, sources: Iterable[KernelSource]) -> list[Compilation]:
        asked = list(sources)
        self.rounds.append([source.text for source in asked])
        return [self._compilation(source) for source in asked]

    def _compilation(self, source: KernelSource) -> Compilation:
        answer = self.rule(source.text)
        if isinstance(answer, str):
            error = CompileError(answer, fix="")
            return Compilation(source, Status.COMPILE_FAILED, None, error, 0.0, cached=False)
        kernel = CompiledKernel(source.digest, source.entry, "sm_90a", "none", b"", answer, "")
        return Compilation(source, Status.OK, kernel, None, 0.0, cached=False)


@pytest.fixture
def make_compiler() -> type[DummyCompiler]:
    """The dummy compiler's class."""
    return DummyCompiler
