"""An engine that takes no plugins, beside a plan of wpk's own: the faster one as a whole."""

from dataclasses import dataclass

from wpk.backends import open_gpu
from wpk.device import CudaDevice
from wpk.engine import Engine, random_inputs
from wpk.execution import Replay
from wpk.nvinfer import PlacedEngine
from wpk.plan import PlanBundle
from wpk.tensorrt.choosing import Duel, Effort, duel
from wpk.tensorrt.hosting import seconds_of


@dataclass(frozen=True)
class _Timed:
    """A whole engine, captured, on the device that replays it."""

    device: CudaDevice
    replay: Replay


class _Clock:
    """Measures whole engines."""

    def latency(self, engine: _Timed) -> float:
        """Seconds of an execution behind another one."""
        return seconds_of(engine.device, engine.replay)


def own_against(bundle: PlanBundle, placed: PlacedEngine, device: CudaDevice) -> Duel:
    """Measure a plan of wpk's own against an engine of TensorRT, in turns.

    Args:
        bundle: The plan.
        placed: The engine, at the plan's tuned sizes.
        device: Where the engine is.

    Raises:
        EngineError: The GPU cannot execute the plan.
        LaunchError: A kernel failed.
    """
    with open_gpu(device.ordinal) as own, Engine(bundle, own) as engine:
        engine.run(random_inputs(bundle.plan, 0))
        plan = _Timed(own, engine.bind().replay)
        return duel(_Clock(), plan, _Timed(device, placed.replay), Effort().runs)
