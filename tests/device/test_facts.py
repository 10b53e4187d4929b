"""What a GPU is, against what was compiled for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.devices.gpus import H200

from wpk.device import differences, executes
from wpk.device.facts import read_driver_version
from wpk.targets.registry import find_target


@pytest.mark.parametrize(
    ("arch", "capability", "fits"),
    [
        ("sm_90a", (9, 0), True),
        ("sm_90a", (10, 0), False),
        ("sm_90", (9, 0), True),
        ("sm_80", (8, 6), True),
        ("sm_86", (8, 0), False),
        ("sm_80", (9, 0), False),
        ("sm_100a", (10, 0), True),
        ("sm_100a", (10, 3), False),
        ("sm_100f", (10, 3), True),
        ("sm_120f", (12, 1), True),
        ("sm_87", (8, 7), True),
        ("sm_86", (8, 7), False),
        ("sm_87", (8, 9), False),
        ("sm_110", (11, 0), True),
    ],
)
def test_machine_code_runs_where_nvidia_says(
    arch: str, capability: tuple[int, int], fits: bool
) -> None:
    assert executes(arch, capability) is fits


def test_a_gpu_that_is_as_the_table_says_differs_in_nothing() -> None:
    assert differences(H200, find_target("h200")) == ()


def test_differences_are_said_with_both_numbers() -> None:
    part = replace(H200, sm_count=16, l2_bytes=30 << 20, clock=1.755e9)
    assert differences(part, find_target("h200")) == (
        "16 multiprocessors, not 132",
        "31457280 bytes of L2, not 62914560",
        "1755 MHz, not 1980",
    )


@pytest.mark.parametrize(
    "line",
    [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  Fri Oct 10 09:21:12 UTC 2026",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build",
    ],
)
def test_the_drivers_version_is_the_kernel_modules(tmp_path: Path, line: str) -> None:
    file = tmp_path / "version"
    file.write_text(f"{line}\nGCC version:  gcc version 13.3.0 (Ubuntu 13.3.0-6ubuntu2~24.04)\n")
    assert read_driver_version("13.0", file) == "580.159.03"


def test_cudas_version_stands_for_a_driver_that_says_nothing(tmp_path: Path) -> None:
    file = tmp_path / "version"
    file.write_text("")
    assert read_driver_version("13.0", file) == "CUDA 13.0"
