"""What a build of TensorRT is asked for: its options by name, since their numbers differ by version."""

from typing import Any

from wpk.dtypes import Precision
from wpk.errors import TargetError
from wpk.nvinfer import Binding, TensorRTError
from wpk.options import TensorRTOptions
from wpk.plan import atomic_file
from wpk.targets import Target

HARDWARE_LEVELS = {"ampere+": "AMPERE_PLUS", "same-capability": "SAME_COMPUTE_CAPABILITY"}
"""TensorRT's names of what can be asked for."""

_MIB = 2**20


def require_target(binding: Binding, target: Target) -> None:
    """Refuse a target that TensorRT for RTX does not build for.

    The full TensorRT builds for the GPU that it finds, whatever is asked of it.

    Raises:
        TargetError: TensorRT for RTX does not know the target's compute capability.
    """
    if not binding.rtx:
        return
    known = [name[2:] for name in binding.module.ComputeCapability.__members__ if _is_sm(name)]
    if "{}{}".format(*target.capability) not in known:
        raise TargetError(
            f"{binding.title} builds for compute capabilities {', '.join(known)}; "
            f"{target.description} has {'{}{}'.format(*target.capability)}",
            fix="install the full TensorRT on a machine with that GPU, build a plan of wpk's own "
            "(--engine wpk), or choose another --target",
        )


def configure(
    binding: Binding, config: Any, options: TensorRTOptions, precision: Precision, target: Target
) -> None:
    """Set everything but profiles and timing cache.

    Args:
        binding: Whose configuration it is.
        config: An IBuilderConfig.
        options: What was asked for.
        precision: TF32 is allowed where it is ``tf32``, and forbidden elsewhere.
        target: TensorRT for RTX builds for it.

    Raises:
        TensorRTError: The installed TensorRT does not know, or refuses, an option.
    """
    module = binding.module
    _refuse_what_rtx_lacks(binding, options)
    config.profiling_verbosity = module.ProfilingVerbosity.DETAILED
    change = config.set_flag if precision is Precision.TF32 else config.clear_flag
    change(_member(binding, "BuilderFlag", "TF32"))
    # From 10.8 on, and only so, the log tells what was timed (wpk/tensorrt/autotuning.py).
    editable = getattr(module.BuilderFlag, "EDITABLE_TIMING_CACHE", None)
    if editable is not None and not binding.rtx:
        config.set_flag(editable)
    if options.version_compatible:
        config.set_flag(_member(binding, "BuilderFlag", "VERSION_COMPATIBLE"))
    if options.hardware_compatible != "none":
        level = HARDWARE_LEVELS[options.hardware_compatible]
        config.hardware_compatibility_level = _member(binding, "HardwareCompatibilityLevel", level)
    if options.optimization_level is not None:
        config.builder_optimization_level = options.optimization_level
    if options.workspace is not None:
        pool = _member(binding, "MemoryPoolType", "WORKSPACE")
        config.set_memory_pool_limit(pool, options.workspace * _MIB)
    if binding.rtx:
        config.num_compute_capabilities = 1
        capability = _member(binding, "ComputeCapability", "SM{}{}".format(*target.capability))
        config.set_compute_capability(capability, 0)


def open_timing_cache(config: Any, options: TensorRTOptions) -> None:
    """Give a build the timing cache of a file, or an empty one where the file is missing.

    Raises:
        TensorRTError: The file cannot be read, or holds no cache for this TensorRT and this GPU.
    """
    path = options.timing_cache
    if path is None:
        return
    try:
        kept = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise TensorRTError(
            f"timing cache {path} cannot be read: {error.strerror}",
            fix="check the file's permissions, or name another with --timing-cache",
        ) from error
    cache = config.create_timing_cache(kept)
    # TensorRT takes bytes that it cannot read as an empty cache, and would overwrite the file.
    lost = kept and bytes(cache.serialize()) == bytes(config.create_timing_cache(b"").serialize())
    if (lost and len(kept) != len(bytes(cache.serialize()))) or not config.set_timing_cache(
        cache, False
    ):
        raise TensorRTError(
            f"{path} holds no timing cache of this TensorRT and this GPU",
            fix="name another file with --timing-cache; a missing one is written anew",
        )


def keep_timing_cache(config: Any, options: TensorRTOptions) -> None:
    """Write what was timed to the file.

    Raises:
        OutputError: It cannot be written.
    """
    if options.timing_cache is not None:
        with atomic_file(options.timing_cache) as stream:
            stream.write(bytes(config.get_timing_cache().serialize()))


def _refuse_what_rtx_lacks(binding: Binding, options: TensorRTOptions) -> None:
    asked = {
        "--timing-cache": options.timing_cache is not None,
        "--version-compatible": options.version_compatible,
    }
    flags = [flag for flag, wanted in asked.items() if wanted]
    if binding.rtx and flags:
        raise TensorRTError(
            f"{binding.title} has no {' and no '.join(flags)}: it times nothing while it builds, "
            "and has no lean runtime",
            fix=f"leave {' and '.join(flags)} away, or install the full TensorRT",
        )


def _member(binding: Binding, enum: str, name: str) -> Any:
    found = getattr(getattr(binding.module, enum, None), name, None)
    if found is None:
        raise TensorRTError(
            f"{binding.title} has no {enum}.{name}",
            fix="leave the option away, or install a newer TensorRT",
        )
    return found


def _is_sm(name: str) -> bool:
    return name.startswith("SM") and name[2:].isdigit()
