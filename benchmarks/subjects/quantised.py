"""ResNet-50 and BERT-base between QuantizeLinear and DequantizeLinear, as onnxruntime's quantiser writes them.

    python benchmarks/subjects/quantised.py bert_base int8 bert_base.int8.onnx

Graphs are kept exports (`subjects.exported`, `bert.zip`) with weights that a seed draws. Weights have a scale for each
output channel; activations have one scale, which the quantiser finds by running ONNX Runtime on drawn inputs. What is
quantised are the operands of convolutions and matrix products, attention's among them.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import onnx
from exporters.store import read
from numpy.typing import NDArray
from onnx import numpy_helper

from subjects.exported import refill

Arrays = Mapping[str, NDArray[Any]]

BERT = Path(__file__).with_name("bert.zip")
TOKENS, WORDS = 128, 30522

PLAIN, INT8, FP8 = "plain", "int8", "fp8"
FORMS = (PLAIN, INT8, FP8)
"""Not quantised; integers of 8 bits; floating point of 8 bits, E4M3."""

PRODUCTS = ("Conv", "Gemm", "MatMul")
"""Whose operands are quantised."""

CALIBRATIONS = 2
"""Inputs from which scales are found: seeds from 0 on."""


@dataclass(frozen=True)
class Network:
    """A network that is quantised.

    Attributes:
        name: As rows are called.
        symmetric: Whether its activations in int8 have no zero point; else they are uint8 with one.
    """

    name: str
    symmetric: bool

    def model(self) -> onnx.ModelProto:
        """The network in fp32, batch 1."""
        return _bert() if self.name == "bert_base" else _resnet()

    def inputs(self, seed: int) -> dict[str, NDArray[Any]]:
        """Inputs that the seed draws: no sentence is padded."""
        rng = np.random.default_rng(seed)
        if self.name == "bert_base":
            ids = rng.integers(0, WORDS, (1, TOKENS))
            return {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        return {"input": rng.standard_normal((1, 3, 224, 224)).astype(np.float32)}


NETWORKS = {each.name: each for each in (Network("resnet50", False), Network("bert_base", True))}


def write(network: Network, form: str, path: Path) -> None:
    """Write the network in one of `FORMS`."""
    model = network.model()
    if form == PLAIN:
        onnx.save(model, path)
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.onnx"
        onnx.save(model, plain)
        _quantise(network, form, plain, path)


def rounded(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with fp32 constants rounded to fp16 but for scales, as an engine in fp16 keeps them."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    quantisations = ("QuantizeLinear", "DequantizeLinear")
    scales = {node.input[1] for node in made.graph.node if node.op_type in quantisations}
    largest = float(np.finfo(np.float16).max)
    for tensor in made.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and tensor.name not in scales:
            array = numpy_helper.to_array(tensor).clip(-largest, largest)  # masks reach beyond
            array = array.astype(np.float16).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return made


def _quantise(network: Network, form: str, plain: Path, path: Path) -> None:
    from onnxruntime import quantization as ort

    class Drawn(ort.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._left = iter([network.inputs(seed) for seed in range(CALIBRATIONS)])

        def get_next(self) -> Arrays | None:
            return next(self._left, None)

    fp8, signed = ort.QuantType.QFLOAT8E4M3FN, ort.QuantType.QInt8
    activations = signed if network.symmetric else ort.QuantType.QUInt8
    method = ort.CalibrationMethod
    ort.quantize_static(
        plain,
        path,
        Drawn(),
        quant_format=ort.QuantFormat.QDQ,
        op_types_to_quantize=list(PRODUCTS),
        per_channel=True,
        activation_type=fp8 if form == FP8 else activations,
        weight_type=fp8 if form == FP8 else signed,
        calibrate_method=method.Distribution if form == FP8 else method.MinMax,
        extra_options={"ActivationSymmetric": network.symmetric},
    )


def _resnet() -> onnx.ModelProto:
    return refill("tv_resnet50.dynamo")


def _bert() -> onnx.ModelProto:
    model, _ = read("bert_base.dynamo.both", archive=BERT)
    for given in model.graph.input:
        for dim, size in zip(given.type.tensor_type.shape.dim, (1, TOKENS), strict=True):
            dim.dim_value = size
    return model


def main(argv: Sequence[str] | None = None) -> int:
    """Write one model to a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args(argv)
    logging.disable(logging.WARNING)  # advice on networks with weights that were learned
    write(NETWORKS[arguments.network], arguments.form, arguments.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
