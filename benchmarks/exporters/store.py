"""Exported graphs in a zip file, without their weights, and with weights that a seed draws again.

Of each graph there are ``NAME.onnx``, as the exporter wrote it but for notes on where in Python a node
comes from and for large initializers of numbers, which are emptied, and ``NAME.json``, its `Facts`.
What an emptied initializer gets depends on its name and the seed alone, and is distributed as what the
exporter wrote: so it is the same on every machine, and activations keep their size.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from exporters.architecture import Given

ARCHIVE = Path(__file__).with_name("kept.zip")

DRAWN = Path(__file__).with_name("drawn.zip")
"""Those that ``export_graphs.py --draw 20261125 21`` wrote: the first 21 of the seed's order that exporters can
write."""

SMALL = 32
"""Elements up to which an initializer is kept as it is: sizes, scales, anchors."""

LARGE_NUMBER = 1e4
"""Initializers that reach it are kept: they mask."""

LARGEST_VARIANCE = 6.0
"""Of a convolution's weights, times the count of products in a sum: 2 keeps the size of activations (He et al.
2015, eq. 10). Exporters fold normalisations into weights; drawn anew without regard to channels, these
would make a network magnify what is rounded until nothing is left of its outputs."""


@dataclass(frozen=True)
class Facts:
    """What is known of a graph beside its nodes.

    Attributes:
        family: The library that the network comes from.
        kind: What it does, see `exporters.architecture.Architecture`.
        inputs: Its inputs, in the order of the graph; a dimension that is named stays free.
        versions: Of the packages that wrote it.
        emptied: Of each emptied initializer: shape, type, mean, standard deviation, least and largest.
    """

    family: str
    kind: str
    inputs: tuple[Given, ...]
    versions: dict[str, str]
    emptied: dict[str, tuple[list[int], str, float, float, float, float]]


def names(archive: Path = ARCHIVE) -> list[str]:
    """The graphs of an archive."""
    with zipfile.ZipFile(archive) as opened:
        found = opened.namelist()
    return sorted(name.removesuffix(".onnx") for name in found if name.endswith(".onnx"))


def read(name: str, seed: int = 0, archive: Path = ARCHIVE) -> tuple[onnx.ModelProto, Facts]:
    """Return a graph with weights drawn from the seed.

    Raises:
        KeyError: The archive holds no such graph.
    """
    with zipfile.ZipFile(archive) as opened:
        model = onnx.load_from_string(opened.read(f"{name}.onnx"))
        facts = _facts(json.loads(opened.read(f"{name}.json")))
    return refilled(model, facts, seed), facts


def refilled(model: onnx.ModelProto, facts: Facts, seed: int) -> onnx.ModelProto:
    """Return a copy of an emptied graph with weights drawn from the seed."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for tensor in made.graph.initializer:
        if tensor.name in facts.emptied:
            values = _draw(tensor.name, facts.emptied[tensor.name], seed)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    return made


def emptied(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Return a copy without notes and large weights, and what `Facts` say of those."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    _forget_notes(made)
    found: dict[str, Any] = {}
    for tensor in made.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if _is_weight(array):
            numbers = array.astype(np.float64)
            measures = (numbers.mean(), _deviation(numbers), numbers.min(), numbers.max())
            rounded = [float(f"{each:.5g}") for each in measures]
            found[tensor.name] = [list(array.shape), str(array.dtype), *rounded]
            for field in ("raw_data", "float_data", "int32_data", "double_data"):
                tensor.ClearField(field)
    return made, found


def write(entries: dict[str, tuple[onnx.ModelProto, Facts]], archive: Path = ARCHIVE) -> None:
    """Write emptied graphs to an archive, beside those of other names that are there."""
    there: dict[str, bytes] = {}
    if archive.exists():
        with zipfile.ZipFile(archive) as opened:
            there = {name: opened.read(name) for name in opened.namelist()}
    for name, (model, facts) in entries.items():
        there[f"{name}.onnx"] = model.SerializeToString(deterministic=True)
        there[f"{name}.json"] = json.dumps(asdict(facts), separators=(",", ":")).encode()
    fresh = archive.with_suffix(".new")
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_LZMA) as opened:
        for name in sorted(there):
            opened.writestr(zipfile.ZipInfo(name), there[name], zipfile.ZIP_LZMA)
    fresh.replace(archive)


def _facts(given: dict[str, Any]) -> Facts:
    inputs = tuple(
        Given(each["name"], tuple(each["shape"]), each["below"]) for each in given["inputs"]
    )
    return Facts(given["family"], given["kind"], inputs, given["versions"], given["emptied"])


def _is_weight(array: NDArray[Any]) -> bool:
    if array.size <= SMALL or not np.issubdtype(array.dtype, np.floating):
        return False
    return bool(np.isfinite(array).all() and np.abs(array).max() < LARGE_NUMBER)


def _deviation(weights: NDArray[np.float64]) -> float:
    """The standard deviation; of a convolution's weights no more than a network bears."""
    if weights.ndim < 3:
        return float(weights.std())
    terms = float(np.prod(weights.shape[1:]))
    return min(float(weights.std()), (LARGEST_VARIANCE / terms) ** 0.5)


def _draw(name: str, measures: Any, seed: int) -> NDArray[Any]:
    shape, dtype, mean, deviation, least, largest = measures
    generator = np.random.default_rng([zlib.crc32(name.encode()), seed])
    values = generator.normal(mean, deviation, shape).clip(least, largest)
    return np.asarray(values, np.dtype(dtype))


def _forget_notes(model: onnx.ModelProto) -> None:
    """Forget docstrings and where nodes come from: most of what dynamo writes."""
    graphs = [model.graph]
    holders: list[Any] = [model, model.graph, *model.functions]
    for graph in graphs:
        holders += [graph, *graph.node, *graph.value_info, *graph.input, *graph.output]
        inner = (a for node in graph.node for a in node.attribute)
        graphs += [a.g for a in inner if a.type == onnx.AttributeProto.GRAPH]
    holders += [node for function in model.functions for node in function.node]
    holders += list(model.graph.initializer)
    for each in holders:
        for field in ("doc_string", "metadata_props"):
            if field in each.DESCRIPTOR.fields_by_name:
                each.ClearField(field)
