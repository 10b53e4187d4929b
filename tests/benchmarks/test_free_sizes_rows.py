"""Rows of free sizes: profiles serve every size, the graph is the one that was exported, rows judge as they say."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exporters.store import read
from rows.base import Context, Finished, RowError
from rows.free_sizes import (
    ARCHIVE,
    FIXED,
    FREE,
    INPUTS,
    LEAST_SIZES,
    MODEL,
    PROFILES,
    SIZES,
    Size,
    judge,
    judge_all,
    profile_of,
    rows,
)

from wpk.plan.measurement import Ratio
from wpk.shape_ranges import parse_shapes


def test_every_size_has_one_profile() -> None:
    for batch in range(1, 33):
        for tokens in range(1, 513):
            assert sum(each.serves(Size(batch, tokens)) for each in PROFILES) == 1
    assert len(set(SIZES)) == len(SIZES) >= LEAST_SIZES
    for profile in PROFILES:
        assert profile.serves(profile.fastest)
    assert profile_of(Size(8, 384)) == PROFILES[7]


def test_profiles_are_said_as_the_command_takes_them() -> None:
    shapes = parse_shapes(PROFILES[7].shapes)
    assert shapes == dict.fromkeys(INPUTS, ((2, 97), (8, 128), (8, 512)))


def test_the_graph_is_bert_base_with_free_sizes() -> None:
    model, facts = read(MODEL, archive=ARCHIVE)
    shapes = {
        each.name: [d.dim_param for d in each.type.tensor_type.shape.dim]
        for each in model.graph.input
    }
    assert shapes == {name: ["batch", "sequence"] for name in INPUTS}
    assert sum(node.op_type == "Softmax" for node in model.graph.node) == 12
    tables = [shape for shape, *_ in facts.emptied.values() if len(shape) == 2]
    assert [30522, 768] in tables
    assert [512, 768] in tables


def _judged(free: float, difference: float) -> Any:
    samples = {FREE: [free] * 20, FIXED: [1e-4] * 20}
    outputs = {FREE: {"y": np.full(4, 1 + difference)}, FIXED: {"y": np.full(4, 1.001)}}
    return judge(samples, outputs, {"y": np.ones(4)}, "profile")


def test_a_size_passes_where_freedom_is_cheap_and_changes_nothing() -> None:
    assert _judged(1.1e-4, 1e-3).passed
    assert not _judged(1.2e-4, 1e-3).passed
    for difference in (0.2, np.nan):
        wrong = _judged(0.9e-4, difference)
        assert not wrong.passed
        assert "WRONG" in wrong.summary
    assert _judged(1.1e-4, 0.0).figures["ratio"]["median"] == pytest.approx(1.1)


def test_all_sizes_together_are_judged_by_the_largest() -> None:
    def records(*ratios: float) -> dict[str, Any]:
        pairs = zip(SIZES, ratios, strict=True)
        return {f"free.bert.{s}": {"figures": {"ratio": asdict(Ratio(v, v, v))}} for s, v in pairs}

    assert judge_all(records(*[1.1] * len(SIZES))).passed
    assert judge_all(records(*[1.1] * len(SIZES))).figures["median"] == pytest.approx(1.1)
    assert not judge_all(records(*[1.0] * (len(SIZES) - 1), 1.2)).passed
    with pytest.raises(RowError, match=r"not measured yet: b1s1, b1s16"):
        judge_all({})


def test_plans_are_made_once_and_not_measured_without_effort(tmp_path: Path) -> None:
    asked: list[tuple[object, ...]] = []

    class Told(Context):
        def wpk(self, *arguments: object) -> Finished:
            asked.append(arguments)
            Path(str(arguments[3])).write_bytes(b"plan")
            return Finished(0.0, "")

    context = Told(tmp_path / "store", tmp_path, time.monotonic() + 60, effort=0)
    kept = tmp_path / "store" / "networks" / f"{MODEL}.onnx"
    kept.parent.mkdir(parents=True)
    kept.touch()
    row = rows()[0]
    assert len(row.measure(context).figures["plans"]) == len(SIZES) + len(PROFILES)
    assert len(asked) == len(SIZES) + len(PROFILES)
    assert all("static" in arguments and "--budget" not in arguments for arguments in asked)
    row.measure(context)
    assert len(asked) == len(SIZES) + len(PROFILES)


def test_there_is_a_row_for_each_size_and_one_for_all() -> None:
    names = [row.name for row in rows()]
    assert names[:3] == ["free.bert.plans", "free.bert.b1s1", "free.bert.b1s16"]
    assert names[-2:] == ["free.bert.b32s512", "free.bert.all"]
