"""The engine's file and its sidecar: together or not at all."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wpk.plan.output_file import OutputError
from wpk.shape_ranges import SizeRange
from wpk.tensorrt import Binding, build, describe, sidecar_path, write_engine

ORIGIN = {"model": "rows.onnx"}


def test_the_sidecar_says_what_the_engine_is(rtx: Binding, requested: Any, tmp_path: Path) -> None:
    request = requested("rows", "fp16", batches=SizeRange(1, 2, 4))
    engine, path = build(rtx, request), tmp_path / "rows.plan"
    operators = frozenset(
        node.name.partition("/")[0] for node in request.model.graph.node if "/" in node.name
    )
    asked = replace(request.options, timing_cache=tmp_path / "own.cache")
    request = replace(request, options=asked)
    write_engine(path, engine, describe(rtx, request, engine, operators, ORIGIN))
    told = json.loads(sidecar_path(path).read_text(encoding="utf-8"))
    assert told["engine"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert told["tensorrt"] == {"version": rtx.version, "rtx": True}
    assert told["target"] == {"name": "a100", "compute_capability": [8, 0]}
    assert told["profiles"] == [{"x": {"min": [1, 6, 33], "opt": [2, 6, 33], "max": [4, 6, 33]}}]
    assert told["options"]["timing_cache"] == "own.cache"  # not the folders of whoever built
    assert operators == {each["operator"] for each in told["layers"]} - {None}
    assert told["inputs"] == [{"name": "x", "type": "float", "shape": [-1, 6, 33]}]


def test_neither_is_written_where_one_cannot_be(
    rtx: Binding, requested: Any, tmp_path: Path
) -> None:
    request = requested("transposed_output")
    engine, path = build(rtx, request), tmp_path / "x.plan"
    sidecar_path(path).mkdir()  # a folder cannot be replaced by a file
    with pytest.raises(OutputError):
        write_engine(path, engine, describe(rtx, request, engine, frozenset(), ORIGIN))
    assert not path.exists()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []
