"""The model as a file for TensorRT's parser, with large constants beside it: a protobuf ends at 2 GiB."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx

EXTERNAL_BYTES = 1024
"""Constants above this size lie beside the model."""


@contextmanager
def model_file(model: onnx.ModelProto) -> Iterator[Path]:
    """Write a model to a folder of its own, which is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="wpk-tensorrt-") as folder:
        path = Path(folder, "model.onnx")
        copy = onnx.ModelProto()
        copy.CopyFrom(model)  # saving with external data takes the constants out of the model
        onnx.save_model(
            copy,
            path,
            save_as_external_data=True,
            location="weights",
            size_threshold=EXTERNAL_BYTES,
        )
        yield path
