"""Known GPUs: lookup, what each lacks, and that every number has a source."""

from dataclasses import fields

import pytest

from wpk.build.arch import check_arch
from wpk.build.nvrtc import load_nvrtc
from wpk.dtypes import ASKED, Precision
from wpk.errors import TargetError
from wpk.targets.driver_names import target_of_gpu
from wpk.targets.limits import LIMITS
from wpk.targets.registry import (
    DEFAULTS,
    find_target,
    plain_arch,
    require_compilable,
    require_precision,
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
        ("sm_100f", "b200"),
        ("sm_86", "rtx3090"),
        ("sm_87", "orin"),
        ("sm_110", "thor"),
        ("sm_110a", "thor"),
        ("sm_101", "thor"),
        ("sm_101a", "thor"),
        ("sm_120", "rtx5090"),
        ("sm_120a", "rtx5090"),
        ("a100-40gb", "a100-40gb"),
        ("sm_60", "p100"),
        ("sm_70", "v100"),
    ],
)
def test_finds_by_name_and_architecture(name: str, found: str) -> None:
    assert find_target(name).name == found


@pytest.mark.parametrize("name", ["", "h300", "sm_", "sm_9", "90", "sm_86a", "sm_88"])
def test_refuses_unknown_names_listing_the_known(name: str) -> None:
    with pytest.raises(TargetError, match="unknown target") as caught:
        find_target(name)
    assert "h200 (sm_90a)" in caught.value.fix


def test_a_misspelt_name_is_answered_with_the_similar_ones() -> None:
    with pytest.raises(TargetError) as caught:
        find_target("h20")
    assert caught.value.fix.startswith("did you mean h200")


def test_an_architecture_that_several_share_stands_for_the_one_with_most_bandwidth() -> None:
    for arch in {plain_arch(target.arch) for target in TARGETS}:
        alike = [target for target in TARGETS if plain_arch(target.arch) == arch]
        assert (arch in DEFAULTS) == (len(alike) > 1), arch
        found = find_target(arch)
        assert found.global_bandwidth == max(each.global_bandwidth for each in alike)


@pytest.mark.parametrize(
    ("name", "capability", "found"),
    [
        ("NVIDIA H200 (sm_90)", (9, 0), "h200"),
        ("NVIDIA H100 80GB HBM3 (sm_90)", (9, 0), "h100"),
        ("NVIDIA H100 PCIe (sm_90)", (9, 0), "h100-pcie"),
        ("NVIDIA H100 NVL (sm_90)", (9, 0), "h200"),
        ("NVIDIA GH200 480GB (sm_90)", (9, 0), "h200"),
        ("NVIDIA A100-SXM4-40GB (sm_80)", (8, 0), "a100-40gb"),
        ("NVIDIA A100-SXM4-80GB (sm_80)", (8, 0), "a100"),
        ("NVIDIA A100 80GB PCIe (sm_80)", (8, 0), "a100"),
        ("NVIDIA A30 (sm_80)", (8, 0), "a30"),
        ("Tesla T4 (sm_75)", (7, 5), "t4"),
        ("NVIDIA A10 (sm_86)", (8, 6), "a10"),
        ("NVIDIA GeForce RTX 3080 (sm_86)", (8, 6), "rtx3080"),
        ("NVIDIA GeForce RTX 3080 Ti (sm_86)", (8, 6), "rtx3090"),
        ("NVIDIA GeForce RTX 3080 Laptop GPU (sm_86)", (8, 6), "rtx3090"),
        ("NVIDIA L4 (sm_89)", (8, 9), "l4"),
        ("NVIDIA L40S (sm_89)", (8, 9), "l40s"),
        ("NVIDIA GeForce RTX 4090 (sm_89)", (8, 9), "rtx4090"),
        ("NVIDIA GeForce RTX 5080 (sm_120)", (12, 0), "rtx5080"),
        ("Orin (sm_87)", (8, 7), "orin"),
        ("NVIDIA Thor (sm_110)", (11, 0), "thor"),
    ],
)
def test_a_gpu_is_the_target_of_exactly_its_name_else_its_architectures(
    name: str, capability: tuple[int, int], found: str
) -> None:
    assert target_of_gpu(name, capability).name == found


def test_a_gpu_of_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(TargetError, match="unknown target 'sm_121'"):
        target_of_gpu("NVIDIA GB10 (sm_121)", (12, 1))


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


@pytest.mark.parametrize("target", TARGETS, ids=NAMES)
def test_the_peak_of_fp64_agrees_with_units_and_clock(target: Target) -> None:
    # fp64 units an SM, from the whitepapers: 2 in Turing, GeForce, A10, Ada; 32 in GP100, GV100 and GA100,
    # 64 in GH100 and GB100. Orin's and Thor's are not published.
    units = {(7, 5): 2, (8, 6): 2, (8, 9): 2, (12, 0): 2, (9, 0): 64, (10, 0): 64, (11, 0): 64}
    each = 64 if target.name == "orin" else units.get(target.capability, 32)
    assert target.peak_double == pytest.approx(2 * each * target.sm_count * target.clock, rel=0.08)
    tensor = target.tensor_peak(Precision.FP64)
    assert tensor is None or target.peak_double <= tensor <= 2.1 * target.peak_double


@pytest.mark.parametrize("target", TARGETS, ids=NAMES)
def test_tensor_peaks_agree_with_units_and_clock(target: Target) -> None:
    # Operations of an SM's tensor cores in a cycle, fp16 with fp32 accumulation, from the whitepapers:
    # Volta 1024; Turing 1024, halved in GeForce; Ampere 8.0 and Orin 2048, 8.6 1024, halved in GeForce;
    # Ada the same; Hopper 4096 at PCIe's or SXM's tensor clock; Blackwell 8192, 12.0 as Ada's GeForce.
    lanes = {(7, 0): 1024, (7, 5): 1024, (8, 0): 2048, (8, 6): 1024, (8, 7): 2048, (8, 9): 1024}
    lanes |= {(9, 0): 4096, (10, 0): 8192, (11, 0): 8192, (12, 0): 1024}
    each = lanes.get(target.capability, 0) // (2 if "GeForce" in target.description else 1)
    peak = target.tensor_peak(Precision.FP16) or 0.0
    assert peak == pytest.approx(each * target.sm_count * target.clock, rel=0.08)
    assert target.tensor_peak(Precision.BF16) in (peak, None)
    assert target.tensor_peak(Precision.TF32) in (pytest.approx(peak / 2, rel=0.01), None)


def test_every_compute_capability_has_a_target() -> None:
    assert {target.capability for target in TARGETS} == set(LIMITS)


@pytest.mark.parametrize("target", TARGETS, ids=NAMES)
def test_the_installed_compiler_builds_for_it(target: Target) -> None:
    if target.name not in ("p100", "v100"):
        check_arch(target.arch, load_nvrtc().supported_archs())


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
        ("t4", Precision.FP16, "fp16 kernels copy to shared memory asynchronously (cp.async"),
        ("t4", Precision.BF16, "NVIDIA T4 (sm_75) has no tensor-core product (mma) for bf16"),
        ("t4", Precision.TF32, "NVIDIA T4 (sm_75) has no tensor-core product (mma) for tf32"),
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


def test_the_fix_for_a_precision_names_those_that_the_target_has() -> None:
    with pytest.raises(TargetError, match="NVIDIA T4") as caught:
        require_precision(find_target("t4"), Precision.FP16)
    assert "--precision fp32 for t4" in caught.value.fix
    require_precision(find_target("t4"), Precision.FP32)


def test_fp32_runs_everywhere_and_everything_runs_on_ampere_and_later() -> None:
    for target in TARGETS:
        assert why_precision_unsupported(target, Precision.FP32) is None
        if target.capability >= (8, 0):
            assert all(why_precision_unsupported(target, p) is None for p in ASKED)
