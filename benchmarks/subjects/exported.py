"""Put seeded weights back into real exporters' graphs whose weights were left out to save space.

    python benchmarks/subjects/exported.py tv_resnet18.dynamo resnet18.onnx --seed 0

`exported.zip` holds, for each model, ``NAME.onnx`` (the graph as torch.onnx wrote it, its large
initializers emptied) and ``NAME.json`` (what was emptied: initializer name to shape and type).  The
weights depend on an initializer's name and the seed alone, so that every machine gets the same.
"""

from __future__ import annotations

import argparse
import json
import math
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

ARCHIVE = Path(__file__).with_name("exported.zip")
_SCALES = ("weight", "var", "gamma")  # names of vectors that multiply or divide: kept near 1


def model_names(path: Path = ARCHIVE) -> list[str]:
    """The models in an archive, e.g. ``tv_resnet18.dynamo``."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    return sorted(name.removesuffix(".onnx") for name in names if name.endswith(".onnx"))


def refill(name: str, seed: int = 0, path: Path = ARCHIVE) -> onnx.ModelProto:
    """Return a model of an archive with weights drawn from the seed.

    Raises:
        KeyError: the archive holds no such model.
    """
    with zipfile.ZipFile(path) as archive:
        model = onnx.load_from_string(archive.read(f"{name}.onnx"))
        emptied = json.loads(archive.read(f"{name}.json"))
    for tensor in model.graph.initializer:
        if tensor.name in emptied:
            shape, dtype = emptied[tensor.name]
            values = _draw(tensor.name, shape, seed).astype(dtype)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return model


def _draw(name: str, shape: Sequence[int], seed: int) -> NDArray[np.float64]:
    """Vectors stay near 1 or 0 by their meaning; the rest keeps variances (He et al. 2015, eq. 10)."""
    generator = np.random.default_rng(zlib.crc32(name.encode()) + seed)
    if len(shape) == 1:
        if any(word in name.lower() for word in _SCALES):
            return generator.uniform(0.8, 1.2, shape)
        return generator.normal(0, 0.05, shape)
    return generator.normal(0, (2 / math.prod(shape[1:])) ** 0.5, shape)


def main(argv: Sequence[str] | None = None) -> int:
    """Write one model to a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=model_names())
    parser.add_argument("output", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    onnx.save(refill(arguments.name, arguments.seed), arguments.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
