"""Write ResNet-18 (He et al. 2016, table 1) as ONNX, with weights drawn from a seed.

    python examples/resnet18.py resnet18.onnx

Nothing is downloaded: the network has the published shape, its weights are random.  They are drawn
so that activations keep their size through the depth, which is what matters for a compiler.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8  # the oldest that opset 17 asks for: read by every ONNX Runtime since 1.12
STAGE_CHANNELS = (64, 128, 256, 512)
BLOCKS_PER_STAGE = 2
CLASSES = 1000


class ResNet18:
    """Builds the graph node by node."""

    def __init__(self, seed: int) -> None:
        """Start an empty graph whose weights come from ``seed``."""
        self._generator = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []

    def build(self, batch: int | str) -> onnx.ModelProto:
        """Return the model: ``input`` (batch, 3, 224, 224) to ``output`` (batch, 1000), fp32.

        Args:
            batch: A number, or a name to leave it free.
        """
        value = self._convolution("conv1", "input", 3, 64, kernel=7, stride=2)
        value = self._node("Relu", "relu1", [value])
        value = self._node(
            "MaxPool", "pool1", [value], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]
        )
        channels = 64
        for stage, width in enumerate(STAGE_CHANNELS, start=1):
            for block in range(BLOCKS_PER_STAGE):
                stride = 2 if stage > 1 and block == 0 else 1
                value = self._block(f"layer{stage}.{block}", value, channels, width, stride)
                channels = width
        value = self._node("GlobalAveragePool", "pool2", [value])
        value = self._node("Flatten", "flatten", [value], axis=1)
        self._classify(value, channels)
        return self._model(batch)

    def _block(self, name: str, value: str, channels: int, width: int, stride: int) -> str:
        """Two 3x3 convolutions beside a shortcut, which is a 1x1 convolution where shapes change."""
        main = self._convolution(f"{name}.conv1", value, channels, width, kernel=3, stride=stride)
        main = self._node("Relu", f"{name}.relu1", [main])
        main = self._convolution(f"{name}.conv2", main, width, width, kernel=3, stride=1)
        shortcut = value
        if stride != 1 or channels != width:
            shortcut = self._convolution(
                f"{name}.downsample", value, channels, width, kernel=1, stride=stride
            )
        total = self._node("Add", f"{name}.add", [main, shortcut])
        return self._node("Relu", f"{name}.relu2", [total])

    def _convolution(
        self, name: str, value: str, channels: int, width: int, *, kernel: int, stride: int
    ) -> str:
        """A convolution without bias, then batch normalization, as the network is trained."""
        scale = (2 / (channels * kernel * kernel)) ** 0.5  # He et al. 2015, eq. 10
        weight = self._generator.normal(0, scale, (width, channels, kernel, kernel))
        inputs = [value, self._weight(f"{name}.weight", weight)]
        value = self._node(
            "Conv",
            name,
            inputs,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[kernel // 2] * 4,
        )
        draws = {
            "scale": self._generator.uniform(0.4, 0.6, width),
            "bias": self._generator.normal(0, 0.05, width),
            "mean": self._generator.normal(0, 0.05, width),
            "variance": self._generator.uniform(0.8, 1.2, width),
        }
        statistics = [self._weight(f"{name}.norm.{key}", draw) for key, draw in draws.items()]
        return self._node("BatchNormalization", f"{name}.norm", [value, *statistics])

    def _classify(self, value: str, channels: int) -> None:
        weight = self._generator.normal(0, channels**-0.5, (CLASSES, channels))
        bias = self._generator.normal(0, 0.05, CLASSES)
        inputs = [value, self._weight("fc.weight", weight), self._weight("fc.bias", bias)]
        self._nodes.append(helper.make_node("Gemm", inputs, ["output"], name="fc", transB=1))

    def _node(self, operator: str, name: str, inputs: list[str], **attributes: object) -> str:
        """Append a node with one output, named after it; return that name."""
        output = f"{name}.output"
        self._nodes.append(helper.make_node(operator, inputs, [output], name=name, **attributes))
        return output

    def _weight(self, name: str, values: NDArray[np.float64]) -> str:
        self._weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def _model(self, batch: int | str) -> onnx.ModelProto:
        image = helper.make_tensor_value_info("input", TensorProto.FLOAT, [batch, 3, 224, 224])
        scores = helper.make_tensor_value_info("output", TensorProto.FLOAT, [batch, CLASSES])
        graph = helper.make_graph(self._nodes, "resnet18", [image], [scores], self._weights)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
        )
        onnx.checker.check_model(model, full_check=True)
        return model


def main(argv: Sequence[str] | None = None) -> int:
    """Write the model to a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", default="1", help="a number, or a name to leave it free")
    arguments = parser.parse_args(argv)
    batch = int(arguments.batch) if arguments.batch.isdigit() else arguments.batch
    onnx.save(ResNet18(arguments.seed).build(batch), arguments.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
