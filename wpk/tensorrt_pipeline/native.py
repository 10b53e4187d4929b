"""TensorRT for RTX's engine, which takes no generated kernels, beside a plan of wpk's own."""

import tempfile
from pathlib import Path

from wpk.device import CudaDevice
from wpk.engine import random_inputs
from wpk.nvinfer import EngineCalls, EngineSession, PlacedEngine
from wpk.plan import write_plan
from wpk.tensorrt import build, write_engine
from wpk.tensorrt.hosting import load_plugins
from wpk.tensorrt_pipeline.hosting import NO_PLUGINS
from wpk.tensorrt_pipeline.job import Job
from wpk.tensorrt_pipeline.outcome import TensorRTOutcome
from wpk.tensorrt_pipeline.whole_engines import own_against


def compete(job: Job, output: Path) -> TensorRTOutcome:
    """Write TensorRT for RTX's engine, or wpk's own plan where both can be measured and that is faster."""
    library = job.request.options.plugin_library
    if library is not None and str(library) != NO_PLUGINS:
        load_plugins(job.binding, library)
    engine = build(job.binding, job.request, job.progress)
    if not job.gpu_is_here():
        description = job.described(engine, job.proven(), None, {})
        write_engine(output, engine, description)
        where = job.request.target.description
        return TensorRTOutcome(
            output,
            description,
            f"the engine was neither executed nor compared: there is no {where} here",
        )
    calls = EngineCalls()
    with tempfile.TemporaryDirectory(prefix="wpk-plan-") as folder:
        own = job.optimized(job.lowered.source.path, Path(folder, "own.plan"), job.search)
        with CudaDevice(libraries=calls) as device:
            checks = job.checked(engine, device, calls)
            session = EngineSession(job.binding, engine.data)
            with PlacedEngine(session, device, calls, random_inputs(own.plan, 0)) as placed:
                times = own_against(own, placed, device)
    remark = f"wpk's own plan takes {times.seconds * 1e6:.1f} µs, TensorRT's engine {times.rival * 1e6:.1f} µs"
    if times.is_won:
        write_plan(output, own)
        return TensorRTOutcome(output, None, remark)
    description = job.described(engine, checks, None, {})
    write_engine(output, engine, description)
    return TensorRTOutcome(output, description, remark)
