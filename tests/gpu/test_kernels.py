"""Every template's kernels give on the GPU what they give on the emulator, up to rounding."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from subjects import exported
from support.networks import handwritten

from wpk.cli.main import main
from wpk.dtypes import ASKED, DType, Precision
from wpk.emulator import EmulatorProcess
from wpk.execution import Device
from wpk.problems import FeedForward

SCHEDULES = 4
"""Schedules of each template for each problem."""

REPETITIONS = 10
"""Runs of a split reduction: blocks end in another order each time."""

ACCUMULATION = 2.0**-18
"""Error of an fp32 sum, relative to the largest output: tensor cores cut the bits of aligned products
that fall off (at most 2^-22 a step), and special functions differ by a few 2^-24."""

NETWORKS = [*handwritten.TEXTS, *handwritten.DOUBLES, *handwritten.FEED_FORWARDS]

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("precision", list(ASKED))
@pytest.mark.parametrize("network", NETWORKS)
def test_kernels_agree_with_the_emulator(
    cuda: Device,
    cases: Callable[..., list[Any]],
    run_case: Callable[..., Any],
    load_case: Callable[..., None],
    record: Callable[[str, object], None],
    precision: Precision,
    network: str,
) -> None:
    chosen = cases(network, precision, SCHEDULES)
    rows = []
    with EmulatorProcess(time_limit_seconds=120) as emulator:
        for case in chosen:
            load_case(case, emulator)
        for case in chosen:
            load_case(case, cuda)
            dtype = case.bundle.plan.values[case.step.operator.outputs[0]].dtype
            problem = case.step.operator.problem
            between = problem.x.dtype if isinstance(problem, FeedForward) else None
            error = _error(run_case(case, cuda), run_case(case, emulator), dtype, between)
            rows.append({"case": str(case), "template": case.template, "error": error})
    record(f"agreement.{network}.{precision.value}", _summary(rows))
    wrong = [row for row in rows if not row["error"] <= 1.0]
    assert not wrong, f"{len(wrong)} of {len(rows)}: {json.dumps(wrong[:5], indent=1)}"


@pytest.mark.memcheck
@pytest.mark.racecheck
@pytest.mark.parametrize("precision", list(ASKED))
@pytest.mark.parametrize("network", NETWORKS)
def test_kernels_write_the_same_elements_every_time(
    cuda: Device,
    cases: Callable[..., list[Any]],
    run_case: Callable[..., Any],
    load_case: Callable[..., None],
    precision: Precision,
    network: str,
) -> None:
    """Every template, without an emulator beside it."""
    for case in cases(network, precision, SCHEDULES):
        load_case(case, cuda)
        written = [~np.isnan(run_case(case, cuda).astype(np.float64)) for _ in range(2)]
        np.testing.assert_array_equal(*written)
        assert written[0].any()


@pytest.mark.parametrize("precision", list(ASKED))
@pytest.mark.parametrize("network", NETWORKS)
def test_split_reductions_repeat_bit_for_bit(
    cuda: Device,
    cases: Callable[..., list[Any]],
    run_case: Callable[..., Any],
    load_case: Callable[..., None],
    precision: Precision,
    network: str,
) -> None:
    """Whichever block is last adds the parts in the same order."""
    for case in [each for each in cases(network, precision, SCHEDULES) if _split(each) > 1]:
        load_case(case, cuda)
        first = run_case(case, cuda).tobytes()
        different = sum(run_case(case, cuda).tobytes() != first for _ in range(REPETITIONS))
        assert not different, f"{case}: {different} of {REPETITIONS} runs differ"


@pytest.mark.parametrize("precision", list(ASKED))
def test_templates_that_split_are_among_the_cases(
    splits: Callable[..., set[str]], precision: Precision
) -> None:
    found = {
        name for network in handwritten.TEXTS for name in splits(network, precision, SCHEDULES)
    }
    cores = ("simt", "mma", "wgmma")
    assert found == {f"{kind}_{core}" for kind in ("conv", "gemm") for core in cores}


def _split(case: Any) -> int:
    """Blocks that share a reduction; 1 in templates that do not split."""
    return int(dict(case.step.candidate.configuration).get("split", 1))


def _error(actual: Any, expected: Any, dtype: DType, between: DType | None = None) -> float:
    """Largest difference in units of what rounding allows; infinite where untouched bytes differ.

    Where numbers are rounded to the type ``between`` two products, a sum in another order may round one to its
    neighbour: of a term half as large as the largest output that is the type's unit roundoff.
    """
    if not dtype.is_float:
        return 0.0 if np.array_equal(actual, expected) else float("inf")
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return float("inf")
    written = ~np.isnan(b)
    if not written.any():
        return float("inf")
    a, b = a[written], b[written]
    scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0)) + 2.0**-24
    digits = 2.0**-29 if dtype is DType.FP64 else 1.0  # beyond those of fp32
    allowed = 2 * dtype.unit_roundoff * np.abs(b) + ACCUMULATION * digits * scale
    allowed += 0.0 if between is None else between.unit_roundoff * scale
    same = a == b  # infinities
    return float(np.max(np.where(same, 0.0, np.abs(a - b) / allowed), initial=0.0))


def _summary(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    templates = sorted({row["template"] for row in rows})
    return {
        name: {
            "cases": sum(row["template"] == name for row in rows),
            "worst_error": max(row["error"] for row in rows if row["template"] == name),
        }
        for name in templates
    }


def test_a_wrong_kernel_is_noticed() -> None:
    """The comparison can fail: a changed element, an element not written, one written too much."""
    good = np.array([1.0, -2.0, np.nan], np.float32)
    assert _error(good, good, DType.FP32) == 0.0
    for index, value in ((0, 1.001), (1, np.nan), (2, 0.0)):
        bad = good.copy()
        bad[index] = value
        assert _error(bad, good, DType.FP32) > 1.0
    for dtype in (DType.FP16, DType.FP32):
        assert _error(good * np.float32(1.002), good, dtype, between=DType.FP16) > 1.0
        assert _error(good + np.float32(0.0004), good, dtype, between=DType.FP16) <= 1.0
    assert _error(good + np.float32(0.0004), good, DType.FP32) > 1.0
    wide = np.random.default_rng(0).standard_normal(9)
    assert _error(wide.astype(np.float32).astype(np.float64), wide, DType.FP64) > 1.0


@pytest.mark.parametrize("precision", list(ASKED))
@pytest.mark.parametrize("network", [n for n in exported.model_names() if "rnn" not in n])
def test_networks_verify_on_the_gpu(
    cuda: Device,
    tmp_path: Path,
    record: Callable[[str, object], None],
    network: str,
    precision: Precision,
) -> None:
    del cuda  # there is one
    model, plan = tmp_path / "network.onnx", tmp_path / "network.plan"
    onnx.save(exported.refill(network), model)
    command = [
        "optimize",
        str(model),
        "-o",
        str(plan),
        "--target",
        "h200",
        "--check",
        "off",
        "--search",
        "static",
    ]
    assert main([*command, "--precision", precision.value]) == 0
    code = main(["verify", str(plan), str(model), "--device", "gpu"])
    record(f"verify.{network}.{precision.value}", {"exit_code": code})
    assert code == 0
