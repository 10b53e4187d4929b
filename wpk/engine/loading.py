"""Make a plan ready on a device that a person names."""

from collections.abc import Sequence

from wpk.backends import open_device
from wpk.emulator import EmulatorProcess
from wpk.engine.engine import Engine, executes_plan
from wpk.engine.machine_code import compare_machine_code, require_executable
from wpk.execution import Device
from wpk.plan import Paths, PlanBundle, bundle_of
from wpk.progress import Progress, silent


def opened_for(
    bundles: Sequence[PlanBundle], device: str, *, trust: bool, progress: Progress = silent
) -> Device:
    """Open the device that is to execute plans, their machine code compared; see `load`."""
    opened = open_device(device)
    if device == "auto" and not all(executes_plan(bundle.plan, opened) for bundle in bundles):
        opened = open_device("cpu")
    if not trust and not isinstance(opened, EmulatorProcess):
        for bundle in bundles:
            if executes_plan(bundle.plan, opened):
                require_executable(compare_machine_code(bundle, progress))
    return opened


def load(
    path: Paths | PlanBundle,
    device: str = "auto",
    *,
    trust: bool = False,
    progress: Progress | None = None,
) -> Engine:
    """Read a plan and make it ready on a device.

    Args:
        path: The plan file, or what `wpk.optimize` returned.
        device: ``cpu`` (the emulator, in a process of its own), ``gpu``, or ``auto``: a GPU that the plan
            was compiled for where there is one, else the CPU.
        trust: Whether a GPU executes the plan's machine code as it is. Without it, it is compiled
            again and compared first; what was compiled on this machine costs nothing.
        progress: Told of the kernels that are compiled; they are waited for then. Without it, those for
            the CPU are compiled in the background, and the first run waits for them.

    Raises:
        PlanError: The file is damaged, or its kernels are not those of this installation.
        EngineError: There is no such device, the plan was compiled for another, or its machine code
            cannot be compared.
        VerificationError: Its machine code is not what its sources give.
    """
    bundle = bundle_of(path)
    opened = opened_for([bundle], device, trust=trust, progress=progress or silent)
    if not isinstance(opened, EmulatorProcess):
        return Engine(bundle, opened)
    engine = Engine(bundle, opened, owns_device=True)
    if progress is not None:
        try:
            opened.finish_loading(progress)
        except BaseException:
            engine.close()
            raise
    return engine
