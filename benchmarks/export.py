"""Export networks with a free batch from the torchvision or transformers modules that they are.

    python benchmarks/export.py resnet50 models/resnet50.onnx

Nothing is downloaded: weights are drawn from a seed, and the statistics of batch normalisations are
those of random images, so that activations keep their size through the network. The file is compared
with the module, executed by ONNX Runtime, at two sizes of the batch; how far they differ is printed as
JSON. Beside the file lie the module's weights: `exported_module` gives the very module again, for whoever
measures it as a baseline.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

OPSET = 18
"""The oldest that torch's exporter writes without converting."""

SEQUENCE = 128
"""Tokens of a sentence."""

_SHIFT = 1.0
"""Mean bias of a batch normalisation in standard deviations, in a deep network without residual sums.
Random layers of normalisation and ReLU magnify what is rounded, by about 1.2 each (Yang et al. 2019, "A
mean field theory of batch normalization"): a hundred of them make noise of it. They do so because ReLU
cuts half of all values; shifted, it cuts a sixth."""

CALIBRATION_BATCHES = 4
CALIBRATION_BATCH = 16

RESIDUAL_SCALE = 0.25
"""Of what a residual block adds. Training begins near 0 (Goyal et al. 2017, section 5.1); blocks that
add as much as they are given make a network of random weights chaotic: its output magnifies roundings."""

ALLOWED = 5e-5
"""Largest difference between ONNX Runtime and the module, relative to the RMS of an output: both
compute in fp32, in different orders."""

CHECKED_BATCHES = (1, 3)


@dataclass(frozen=True)
class Network:
    """What is exported.

    Attributes:
        input: Name of its input.
        shape: The input's shape after the batch.
        tokens: Size of the vocabulary where the input holds tokens; 0 for images.
        shift: Mean of the biases of batch normalisations.
    """

    input: str
    shape: tuple[int, ...]
    tokens: int = 0
    shift: float = 0.0

    def shapes(self, batch: int) -> str:
        """What ``wpk optimize --shapes`` is given for a batch."""
        return f"{self.input}:{'x'.join(map(str, (batch, *self.shape)))}"


_IMAGE = Network("image", (3, 224, 224))

NETWORKS = {
    "resnet18": _IMAGE,
    "resnet50": _IMAGE,
    "mobilenet_v2": _IMAGE,
    "densenet121": _IMAGE,
    "inception_v3": Network("image", (3, 299, 299), shift=_SHIFT),
    "distilbert": Network("tokens", (SEQUENCE,), tokens=30522),
}


def build(name: str, seed: int = 0) -> Any:
    """The module, with seeded weights, ready for inference."""
    import torch

    torch.manual_seed(seed)
    module = _bare(name)
    if not NETWORKS[name].tokens:
        _calibrate(module, NETWORKS[name])
    return module.eval()


def exported_module(name: str, path: Path) -> Any:
    """The module that a file was exported from, with its weights, ready for inference."""
    import torch

    module = _bare(name)
    module.load_state_dict(torch.load(weights_of(path), weights_only=True))
    return module.eval()


def weights_of(path: Path) -> Path:
    """Where the weights of an exported network's module lie."""
    return path.with_suffix(".weights.pt")


def _bare(name: str) -> Any:
    """The module with weights of torch's present seed."""
    network = NETWORKS[name]
    if network.tokens:
        return _distilbert(network.tokens)
    import torchvision

    # Inception: its second classifier serves training alone; its own initialisation takes minutes.
    more = {"aux_logits": False, "init_weights": False} if name == "inception_v3" else {}
    return getattr(torchvision.models, name)(weights=None, **more)


def draw(network: Network, batch: int, seed: int) -> Any:
    """A random input of the module."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    shape = (batch, *network.shape)
    if network.tokens:
        return torch.randint(0, network.tokens, shape, generator=generator)
    return torch.randn(shape, generator=generator)


def _distilbert(tokens: int) -> Any:
    import torch
    from transformers import DistilBertConfig, DistilBertModel

    class LastHidden(torch.nn.Module):
        """The encoder as a function of its tokens alone."""

        def __init__(self) -> None:
            super().__init__()
            config = DistilBertConfig(vocab_size=tokens, attn_implementation="sdpa")
            self.encoder = DistilBertModel(config)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.encoder(input_ids=tokens).last_hidden_state

    return LastHidden()


def _calibrate(module: Any, network: Network) -> None:
    """Give batch normalisations the statistics of random images, and scales other than 1."""
    import torch
    from torchvision.models.resnet import BasicBlock, Bottleneck

    lasts = {id(m.bn2) for m in module.modules() if isinstance(m, BasicBlock)}
    lasts |= {id(m.bn3) for m in module.modules() if isinstance(m, Bottleneck)}
    norms = [m for m in module.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    with torch.no_grad():
        for norm in norms:
            norm.weight.uniform_(0.8, 1.2)
            if id(norm) in lasts:
                norm.weight.mul_(RESIDUAL_SCALE)
            norm.bias.normal_(network.shift, 0.05)
            norm.momentum = None  # a plain mean over the batches
        module.train()
        for seed in range(CALIBRATION_BATCHES):
            module(draw(network, CALIBRATION_BATCH, seed))


def export(name: str, path: Path, seed: int = 0) -> float:
    """Write a network, and return how far ONNX Runtime is from the module, relative to its RMS.

    Raises:
        SystemExit: They differ by more than `ALLOWED`; nothing is written then.
    """
    import torch

    network = NETWORKS[name]
    module = build(name, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        fresh = Path(folder) / path.name
        with torch.no_grad():
            torch.onnx.export(
                module,
                (draw(network, 2, seed),),
                fresh,
                input_names=[network.input],
                output_names=["output"],
                dynamic_shapes=({0: torch.export.Dim("batch", min=1, max=1024)},),
                opset_version=OPSET,
                dynamo=True,
                external_data=False,
                verbose=False,
            )
        error = max(_difference(module, network, fresh, batch) for batch in CHECKED_BATCHES)
        if not error <= ALLOWED:
            raise SystemExit(f"{name}: ONNX Runtime differs from the module by {error:.2g}")
        weights = Path(folder) / "weights"
        torch.save(module.state_dict(), weights)
        os.replace(weights, weights_of(path))  # before the file: whoever sees that sees both
        os.replace(fresh, path)
    return error


def _difference(module: Any, network: Network, path: Path, batch: int) -> float:
    import onnxruntime
    import torch

    inputs = draw(network, batch, 100 + batch)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (actual,) = session.run(None, {network.input: inputs.numpy()})
    with torch.no_grad():
        expected = module(inputs).numpy()
    rms = float(np.sqrt(np.mean(np.square(expected, dtype=np.float64))))
    return float(np.abs(actual - expected).max()) / rms


def main() -> None:
    """Write one network to a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("output", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    error = export(options.network, options.output, options.seed)
    figures = {
        "file": options.output.name,
        "bytes": options.output.stat().st_size,
        "opset": OPSET,
        "seed": options.seed,
        "error": error,
        "allowed": ALLOWED,
        "batches": CHECKED_BATCHES,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
