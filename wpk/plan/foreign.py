"""Files that are given in a plan's place: engines of TensorRT, which are called plans, too, and models."""

from pathlib import Path

from wpk.errors import PlanError
from wpk.file_kinds import FileKind, kind_of_file

_TOOLS = {FileKind.TENSORRT: "trtexec", FileKind.TENSORRT_RTX: "tensorrt_rtx"}
"""NVIDIA's own programs that execute engines."""


def tool_for(path: Path) -> str | None:
    """The command that executes an engine of TensorRT; None where a file is none, or cannot be read."""
    kind = kind_of_file(path)
    return None if kind not in _TOOLS else f"{_TOOLS[kind]} --loadEngine={path}"


def refuse_others(path: Path) -> None:
    """Refuse a file that is known to be something else where a plan is asked for.

    Raises:
        PlanError: It is; says what to do with it.
    """
    tool, kind = tool_for(path), kind_of_file(path)
    if tool is not None:
        raise PlanError(
            f"{path} is an engine of TensorRT, which wpk does not execute",
            fix=f"{tool} executes it, with --dynamicPlugins=libwpk_tensorrt.so if it holds plugins; wpk inspect "
            "tells what is in it",
        )
    if kind is FileKind.MODEL:
        raise PlanError(
            f"{path} is {kind.value}, and a plan is asked for here",
            fix=f"make a plan of it first: wpk optimize {path} -o {path.with_suffix('.plan').name}; where a "
            "command takes both, the plan comes first",
        )
    if kind is FileKind.TORCH:
        raise PlanError(
            f"{path} is {kind.value}, and a plan is asked for here",
            fix="export the model with torch.onnx.export, and make a plan of that: wpk optimize",
        )
