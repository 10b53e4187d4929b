"""From a model to an engine of TensorRT.

The full TensorRT hosts generated kernels where they win; TensorRT for RTX, which takes none, competes with a plan of
wpk's own as a whole.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wpk.assembly import input_ports
from wpk.checks import proven, require_inputs, scope_of
from wpk.dtypes import Precision
from wpk.lowering.model import lower_model
from wpk.lowering.program import Program
from wpk.options import TensorRTOptions, split_options
from wpk.plan import CheckMode
from wpk.progress import Progress, silent
from wpk.search.loop import choose_target
from wpk.shape_ranges import SizeRange
from wpk.target_features import TargetFeatures
from wpk.tensorrt import ANY_BATCH, Request, TensorRTError, exported, find_binding, require_target
from wpk.tensorrt_pipeline.hosting import host
from wpk.tensorrt_pipeline.job import Arrays, Job
from wpk.tensorrt_pipeline.native import compete
from wpk.tensorrt_pipeline.outcome import TensorRTOutcome


def optimize_tensorrt(
    model: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    tensorrt: TensorRTOptions | None = None,
    cache: str | os.PathLike[str] | None = None,
    check: CheckMode | str = CheckMode.ON,
    inputs: Sequence[Arrays] = (),
    progress: Progress = silent,
    **options: Any,
) -> TensorRTOutcome:
    """Turn an ONNX model into a serialized engine of the TensorRT that is installed, and a JSON that tells of it.

    Args:
        model: The ONNX file; external data lies beside it.
        output: The engine to write; ``OUTPUT.json`` appears beside it, both only after every check has passed.
        tensorrt: How TensorRT builds, and which plugin library it loads.
        cache: As for `wpk.optimize`; so are ``check``, ``inputs``, ``progress`` and ``options``.
        check: The engine is executed where the target's GPU is, and its outputs compared with ONNX Runtime's.
        inputs: See there.
        progress: Told of every stage.
        options: See there; what searching may cost is divided among the operators.

    Returns:
        What was written. Where TensorRT for RTX built the engine, it may be a plan of wpk's own, if that is
        faster.

    Raises:
        WpkError: With what is wrong and what to do; nothing is written then.
    """
    tensorrt = tensorrt or TensorRTOptions()
    binding = find_binding()
    build_options, search = split_options(options)
    precision = Precision(build_options.precision)
    target = choose_target(build_options.target, precision)
    require_target(binding, target)
    lowered = lower_model(
        Path(model),
        build_options.shapes,
        precision,
        build_options.skip_passes,
        progress,
        changed=build_options.changed_sites,
        features=TargetFeatures(
            clusters=False
        ),  # a squeeze may take two steps, and a plugin is one
    )
    lowered.require_sites()
    _require_one_free(lowered.program)
    scope = scope_of(check, inputs)
    require_inputs(inputs, input_ports(lowered.program))
    job = Job(
        binding=binding,
        lowered=lowered,
        request=Request(
            exported(lowered.graph), target, precision, tensorrt, _batches(lowered.program)
        ),
        proof=None if scope is None else proven(lowered, scope, progress),
        build=replace(build_options, target=target.name),
        search=search,
        cache=cache,
        progress=progress,
    )
    return compete(job, Path(output)) if binding.rtx else host(job, Path(output))


def _require_one_free(program: Program) -> None:
    """Refuse several free dimensions, for which no profile is made.

    Raises:
        TensorRTError: There are several.
    """
    if len(program.free) > 1:
        raise TensorRTError(
            f"several dimensions are free: {', '.join(program.free)}; one, the batch, may be",
            fix="decide the others with --shapes, or use --engine wpk",
        )


def _batches(program: Program) -> SizeRange:
    """The sizes of the batch: the limits that were asked for, else TensorRT's."""
    for name, (smallest, largest) in program.limits.items():
        return SizeRange(smallest, program.free[name], largest)
    return ANY_BATCH
