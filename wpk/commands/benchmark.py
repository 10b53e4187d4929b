"""``wpk.bench``: a plan timed on the GPU of this machine."""

from dataclasses import dataclass

from wpk.backends import open_gpu
from wpk.device import GpuFacts
from wpk.engine import EngineTimes, compare_machine_code, require_executable, time_engine
from wpk.plan import Paths, Plan, PlanBundle, bundle_of
from wpk.progress import Progress
from wpk.report import shown


@dataclass(frozen=True)
class Benchmark:
    """What was measured.

    Attributes:
        plan: Of what.
        times: The whole engine, and every operator alone.
        device: Name of the GPU.
        facts: Driver and capability of the GPU.
    """

    plan: Plan
    times: EngineTimes
    device: str
    facts: GpuFacts

    def __repr__(self) -> str:
        """The engine's median, and where."""
        return f"<Benchmark of {self.plan!r}: {self.times.engine.median * 1e6:.2f} µs on {self.device}>"


def bench(
    plan: Paths | PlanBundle, *, trust: bool = False, progress: Progress | None = None
) -> Benchmark:
    """Time a plan at its tuned sizes on random inputs, on the GPU of this machine.

    Args:
        plan: The plan file, or what `wpk.optimize` returned.
        trust: Whether the GPU executes machine code that was not compared (see `wpk.load`).
        progress: Told of the comparison; by default a line on a terminal's stderr.

    Raises:
        EngineError: There is no GPU that executes the plan.
        LaunchError: A kernel failed.
    """
    bundle = bundle_of(plan)
    with open_gpu() as device:
        if not trust:
            require_executable(compare_machine_code(bundle, shown(progress)))
        return Benchmark(bundle.plan, time_engine(bundle, device), device.name, device.facts)
