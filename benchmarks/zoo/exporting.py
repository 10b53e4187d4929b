"""Networks of the zoo as files: built by a seed, written by torch's exporter, and built again to compare with."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from export import OPSET, weights_of
from exporters.architecture import Architecture
from exporters.inputs import draw_arrays
from exporters.waking import calibrate, wake

_SHIFT = 1.0
"""Mean bias of batch normalisations, in standard deviations: see `export.Network.shift`."""

_LEAST_SPREAD = 0.25
"""Standard deviation of what a batch normalisation sees, as a part of its mean."""

ALLOWED = 5e-5
"""Largest difference between ONNX Runtime and the module, as `export.ALLOWED` is: a network that magnifies
roundings more cannot be compared in fp16."""

_CHECKED_SEED = 100
"""Of the inputs that a file is compared on."""


def draw(architecture: Architecture, batch: int, seed: int) -> dict[str, Any]:
    """Random inputs by name, as tensors."""
    import torch

    arrays = draw_arrays(architecture.inputs, {"batch": batch}, seed)
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def build(architecture: Architecture, seed: int = 0) -> Any:
    """The module with weights of a seed, every layer of which matters to its outputs."""
    import torch

    torch.manual_seed(seed)
    module = architecture.build().eval()
    wake(module)
    _shift(module)
    _calm(module)
    calibrate(module, architecture.inputs)
    _steady(module)
    return module.eval()


def _shift(module: Any) -> None:
    """Let most of what a batch normalisation gives pass the ReLU behind it: `_SHIFT`."""
    from torch import nn

    for norm in module.modules():
        if isinstance(norm, nn.BatchNorm2d) and norm.bias is not None:
            nn.init.normal_(norm.bias, _SHIFT, 0.05)


def _calm(module: Any) -> None:
    """Let attention without a scale of its own see scores near 1: T5's weights make up for that, once trained."""
    import torch

    with torch.no_grad():
        for part in module.modules():
            if type(part).__name__ == "T5Attention":
                part.q.weight.mul_(part.key_value_proj_dim**-0.5)


def _steady(module: Any) -> None:
    """Let batch normalisations of means over an image, which random images hardly move, not magnify roundings."""
    import torch
    from torch import nn

    with torch.no_grad():
        for norm in module.modules():
            if isinstance(norm, nn.BatchNorm2d) and norm.running_var is not None:
                least = (_LEAST_SPREAD * norm.running_mean) ** 2
                norm.running_var.copy_(torch.maximum(norm.running_var, least))


def exported_module(architecture: Architecture, path: Path) -> Any:
    """The module that a file was exported from, with its weights, ready for inference."""
    import torch

    module = architecture.build()
    module.load_state_dict(torch.load(weights_of(path), weights_only=True))
    return module.eval()


def export(architecture: Architecture, batch: int, path: Path, seed: int = 0) -> float:
    """Write a network of a fixed batch and its weights; say how far ONNX Runtime is from the module.

    Returns:
        The largest difference of an element, relative to the root mean square of its output.

    Raises:
        SystemExit: It is more than `ALLOWED`; nothing is written then.
    """
    import torch

    module = build(architecture, seed)
    inputs = draw(architecture, batch, _CHECKED_SEED)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of tracing
        fresh = Path(folder) / path.name
        with torch.no_grad():
            torch.onnx.export(
                module,
                tuple(inputs.values()),
                fresh,
                input_names=list(inputs),
                opset_version=OPSET,
                dynamo=True,
                external_data=False,
                verbose=False,
            )
        error = _difference(module, inputs, fresh)
        if not error <= ALLOWED:
            raise SystemExit(f"{architecture.name}: ONNX Runtime is {error:.2g} from the module")
        weights = Path(folder) / "weights"
        torch.save(module.state_dict(), weights)
        os.replace(weights, weights_of(path))  # before the file: whoever sees that sees both
        os.replace(fresh, path)
    return error


def _difference(module: Any, inputs: dict[str, Any], path: Path) -> float:
    import onnxruntime
    import torch

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    found = session.run(None, {name: each.numpy() for name, each in inputs.items()})
    with torch.no_grad():
        right = module(*inputs.values())
    errors = []
    for ours, theirs in zip(found, right if isinstance(right, tuple) else [right], strict=True):
        expected = theirs.numpy()
        rms = float(np.sqrt(np.mean(np.square(expected, dtype=np.float64))))
        errors.append(float(np.abs(ours - expected).max()) / rms)
    return max(errors)
