"""What a person may give as a model: a file, or what lies in memory, written to a file for the while.

Everything else reads files: external data, digests and ONNX Runtime begin with a path.
"""

import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from wpk.errors import GraphError

Model = str | os.PathLike[str] | onnx.ModelProto | bytes | Any
"""A path, a model in memory, its bytes, or a `torch.nn.Module`."""

_INLINE_BYTES = 2**31 - 2**20
"""Protobuf holds less than 2 GiB in one message; larger models get their weights beside them."""


@contextmanager
def model_file(model: Model, example_inputs: Sequence[Any] | Mapping[str, Any]) -> Iterator[Path]:
    """Have a model as a file; one that was written for this is removed behind the block.

    Args:
        model: See `Model`.
        example_inputs: What to call a module with, tensors by position or by name; for modules only.

    Raises:
        GraphError: It is something else, or cannot be exported.
    """
    if isinstance(model, str | os.PathLike):
        _require_no_examples(model, example_inputs)
        yield Path(model)
        return
    with tempfile.TemporaryDirectory(prefix="wpk-model-") as folder:
        if _is_module(model):
            path = Path(folder) / f"{type(model).__name__}.onnx"
            _export(model, example_inputs, path)
        else:
            _require_no_examples(model, example_inputs)
            proto = _parsed(model) if isinstance(model, bytes) else model
            if not isinstance(proto, onnx.ModelProto):
                raise GraphError(
                    f"a model is given as {type(model).__name__}",
                    fix="give the path of an ONNX file, an onnx.ModelProto, its bytes, or a torch.nn.Module",
                )
            path = Path(folder) / f"{_file_name(proto.graph.name)}.onnx"
            _save(proto, path)
        yield path


def _is_module(model: object) -> bool:
    """Whether it is PyTorch's; who has a module has imported torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _export(module: Any, example_inputs: Sequence[Any] | Mapping[str, Any], path: Path) -> None:
    import torch

    if not example_inputs:
        raise GraphError(
            f"{type(module).__name__} is a module without example_inputs, which its export is called with",
            fix="give them: wpk.optimize(module, 'model.plan', example_inputs=(torch.zeros(1, 3, 224, 224),))",
        )
    named = isinstance(example_inputs, Mapping)
    try:
        torch.onnx.export(
            module.eval(),
            () if named else tuple(example_inputs),
            str(path),
            kwargs=dict(example_inputs) if named else None,
            input_names=list(example_inputs) if named else None,
        )
    except Exception as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise GraphError(
            f"torch.onnx.export cannot export {type(module).__name__}: {first}",
            fix="see the exception behind this one; export the module yourself and give the file",
        ) from error


def _parsed(data: bytes) -> onnx.ModelProto:
    try:
        return onnx.load_model_from_string(data)
    except (DecodeError, ValueError) as error:
        raise GraphError(
            f"{len(data)} bytes are given as a model, and are no ONNX model: {error}",
            fix="give the bytes of an ONNX file, or its path",
        ) from error


def _save(proto: onnx.ModelProto, path: Path) -> None:
    if proto.ByteSize() < _INLINE_BYTES:
        path.write_bytes(proto.SerializeToString(deterministic=True))
        return
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)  # saving moves the weights out of the message that it is given
    onnx.save_model(copy, path, save_as_external_data=True, location=f"{path.name}.data")


def _file_name(name: str) -> str:
    return re.sub(r"\W+", "_", name)[:64].strip("_") or "model"


def _require_no_examples(model: object, examples: Sequence[Any] | Mapping[str, Any]) -> None:
    if len(examples):
        raise GraphError(
            f"example_inputs are given, and the model is given as {type(model).__name__}, not as a module",
            fix="leave them out; inputs=[{...}] gives arrays to check on",
        )
