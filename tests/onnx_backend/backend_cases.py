"""The tests that onnx ships for backends, each found by its group and its name.

A node test is made by the module of its operator when that is imported, with data of a fixed seed; the
others lie as files. Modules are imported one by one: all of them take ten seconds.
"""

import functools
import importlib
import pkgutil
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from backend_float32 import is_float32_inference
from onnx.backend.test import loader
from onnx.backend.test.case import node

VERSION = "1.23.2"
"""The onnx whose tests the expectations are about; another has other tests."""

FOLDERS = ("pytorch-converted", "pytorch-operator", "simple")
"""Kinds that lie as files; 'real' ships no data."""

DataSet = tuple[list[Any], list[Any]]
"""Inputs and outputs in the graph's order: arrays, or what is no tensor."""


@dataclass(frozen=True)
class Case:
    """A test: a model, and what comes out of it."""

    group: str
    name: str
    model: onnx.ModelProto
    data: tuple[DataSet, ...]
    rtol: float


@dataclass(frozen=True)
class Listed:
    """Where a test is, and whether it is among those of inference in float32 (`backend_float32`)."""

    group: str
    is_float32: bool


def find_case(group: str, name: str) -> Case:
    """The test of this name.

    Args:
        group: ``node/MODULE``, or the kind of a test that lies as files.
        name: E.g. ``test_abs``.

    Raises:
        KeyError: The installed onnx has no such test.
    """
    if group in FOLDERS:
        found = {each.name: each for each in loader.load_model_tests(kind=group)}[name]
        return _from_files(group, found)
    _import(group.removeprefix("node/"))
    found = {each.name: each for each in node._NodeTestCases}[name]
    data = [tuple([_array(v) for v in values] for values in pair) for pair in found.data_sets]
    return Case(group, name, found.model, tuple(data), found.rtol)


@functools.cache
def all_cases() -> dict[str, Listed]:
    """Every test of the suite by its name.

    A fresh process looks: which module makes a test shows only while it is imported for the first time.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        return fresh.submit(_listed).result()


def _listed() -> dict[str, Listed]:
    found = {}
    for kind in FOLDERS:
        for each in loader.load_model_tests(kind=kind):
            found[each.name] = _listing(kind, onnx.load(Path(each.model_dir) / "model.onnx"))
    for module in _modules():
        _import(module)
        for each in node._NodeTestCases:
            if each.name not in found:
                found[each.name] = _listing(f"node/{module}", each.model)
    return found


def _listing(group: str, model: onnx.ModelProto) -> Listed:
    return Listed(group, is_float32_inference(group, model))


def _modules() -> Iterator[str]:
    prefix = f"{node.__name__}."
    for found in pkgutil.walk_packages(node.__path__, prefix):
        if not found.ispkg:
            yield found.name.removeprefix(prefix)


def _import(module: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # data at the edges of types overflows on purpose
        importlib.import_module(f"{node.__name__}.{module}")


def _from_files(group: str, found: Any) -> Case:
    folder = Path(found.model_dir)
    model = onnx.load(folder / "model.onnx")
    given = {each.name for each in model.graph.initializer}
    inputs = [each for each in model.graph.input if each.name not in given]
    data = [
        (_read_all(each, "input", inputs), _read_all(each, "output", list(model.graph.output)))
        for each in sorted(folder.glob("test_data_set_*"))
    ]
    return Case(group, found.name, model, tuple(data), found.rtol)


def _read_all(folder: Path, stem: str, infos: list[onnx.ValueInfoProto]) -> list[Any]:
    return [_read(folder / f"{stem}_{i}.pb", info.type) for i, info in enumerate(infos)]


def _read(path: Path, kind: onnx.TypeProto) -> Any:
    """A tensor as an array; a sequence or an optional, which no engine takes, as it was read."""
    if not kind.HasField("tensor_type"):
        return onnx.SequenceProto.FromString(path.read_bytes())
    return _array(onnx.TensorProto.FromString(path.read_bytes()))


def _array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value) if isinstance(value, np.generic) else value
