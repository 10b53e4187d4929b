"""Known GPUs: lookup, what each lacks, and that every number has a source."""

from dataclasses import fields

import pytest

from wpk.dtypes import Precision
from wpk.errors import TargetError
from wpk.targets.registry import (
    find_target,
    require_compilable,
    why_precision_unsupported,
)
from wpk.targets.table import TARGETS
from wpk.targets.target import Target

NAMES = [target.name for target in TARGETS]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("h200", "h200"),
        ("H200", "h200"),
        ("sm_90", "h200"),
        ("sm_90a", "h200"),
        ("h100", "h100"),
        ("sm_80", "a100"),
        ("sm_75", "rtx2080"),
        ("sm_89", "rtx4090"),
        ("sm_100", "b200"),
        ("sm_100a", "b200"),
        ("sm_60", "p100"),
        ("sm_70", "v100"),
    ],
)
def test_finds_by_name_and_architecture(name: str, found: str) -> None:
    assert find_target(name).name == found


@pytest.mark.parametrize("name", ["", "h300", "sm_", "sm_9", "90"])
def test_refuses_unknown_names_listing_the_known(name: str) -> None:
    with pytest.raises(TargetError, match="unknown target") as caught:
        find_target(name)
    assert "h200 (sm_90a)" in caught.value.fix


def test_auto_without_a_gpu_names_the_fix() -> None:
    with pytest.raises(TargetError, match="none was read") as caught:
        find_target("auto")
    assert "--target h200" in caught.value.fix


@pytest.mark.parametrize("target", TARGETS, ids=NAMES)
def test_every_number_has_a_source(target: Target) -> None:
    named = {source for source, _ in target.sources}
    unnamed = {f.name for f in fields(target)} - named - {"name", "arch", "sources"}
    assert not unnamed


@pytest.mark.parametrize("target", TARGETS, ids=NAMES)
def test_the_ordinary_peak_agrees_with_cores_and_clock(target: Target) -> None:
    # 64 fp32 lanes an SM up to Turing and on A100, 128 on Ada, Hopper and Blackwell; two
    # operations a lane and cycle. 8 %: datasheets round, and B200's peak and clock differ in origin.
    lanes = 64 if target.capability <= (8, 0) else 128
    assert target.peak_ordinary == pytest.approx(
        2 * lanes * target.sm_count * target.clock, rel=0.08
    )


@pytest.mark.parametrize("name", ["p100", "v100"])
def test_refuses_to_compile_for_gpus_that_only_the_models_know(name: str) -> None:
    with pytest.raises(TargetError, match="performance models only") as caught:
        require_compilable(find_target(name))
    assert "h200" in caught.value.fix
    assert name not in caught.value.fix.split()


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("p100", "v100")])
def test_compiles_for_the_others(name: str) -> None:
    require_compilable(find_target(name))


@pytest.mark.parametrize(
    ("name", "precision", "words"),
    [
        ("rtx2080", Precision.FP16, "cp.async"),
        ("rtx2080", Precision.BF16, "no tensor-core product (mma) for bf16"),
        ("rtx2080", Precision.TF32, "no tensor-core product (mma) for tf32"),
        ("p100", Precision.FP16, "no tensor-core product (mma) for fp16"),
        ("v100", Precision.FP16, "cp.async"),
    ],
)
def test_says_why_a_precision_is_unsupported(name: str, precision: Precision, words: str) -> None:
    reason = why_precision_unsupported(find_target(name), precision)
    assert reason is not None
    assert words in reason


def test_fp32_runs_everywhere_and_everything_runs_on_ampere_and_later() -> None:
    for target in TARGETS:
        assert why_precision_unsupported(target, Precision.FP32) is None
        if target.capability >= (8, 0):
            assert all(why_precision_unsupported(target, p) is None for p in Precision)
