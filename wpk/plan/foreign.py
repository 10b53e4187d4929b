"""Engines of TensorRT, which are called plans, too: told by their first bytes."""

from pathlib import Path

from wpk.errors import PlanError

_TOOLS = {b"ftrt": "trtexec", b"ptrt": "trtexec", b"vtrt": "tensorrt_rtx"}
"""NVIDIA's own program that executes a file, by its first bytes: of TensorRT, and of TensorRT for RTX."""


def tool_for(path: Path) -> str | None:
    """The command that executes an engine of TensorRT; None where a file is none, or cannot be read."""
    try:
        with path.open("rb") as stream:
            tool = _TOOLS.get(stream.read(4))
    except OSError:
        return None
    return None if tool is None else f"{tool} --loadEngine={path}"


def refuse_tensorrt_engine(path: Path) -> None:
    """Refuse an engine of TensorRT where a plan of wpk's own is asked for.

    Raises:
        PlanError: It is one; says what executes it.
    """
    tool = tool_for(path)
    if tool is not None:
        raise PlanError(
            f"{path} is an engine of TensorRT, which wpk does not execute",
            fix=f"{tool} executes it, with --dynamicPlugins=libwpk_tensorrt.so if it holds plugins; wpk inspect "
            "tells what is in it",
        )
