"""gemm_skinny's negative controls: planted faults are seen; and its machine code asks for many vectors at once."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.faults.planter import Fault, change, drop, plant
from support.machine_code.disassembly import listing
from support.problems.products import matmul

from wpk.build import load_nvrtc
from wpk.dtypes import DType
from wpk.emulator import EmulatorError
from wpk.problems import Matmul
from wpk.schedules.gemm_skinny import GemmSkinnyTemplate, SkinnySchedule
from wpk.targets import find_target

SKINNY = GemmSkinnyTemplate()
ALONG = SkinnySchedule(block_m=4, thread_n=2, threads_k=64, threads_n=1, depth=1, prefetch=1)
ACROSS = SkinnySchedule(block_m=4, thread_n=8, threads_k=8, threads_n=8, depth=4, prefetch=0)

FAULTS = [
    (True, Fault("beyond the end of a row", change("end_of_a", "Problem::k", "4096"))),
    (
        True,
        Fault("beyond the end of a column", change("end_of_columns", "Problem::b_depth", "4096")),
    ),
    (False, Fault("beyond the last row of b", change("end_of_rows", "Problem::b_depth", "4096"))),
    (True, Fault("rows that do not exist", change("rows_of_a", "m < rows", "true"))),
    (True, Fault("columns that do not exist", change("columns_of_b", "i < columns", "true"))),
    (True, Fault("lanes keep their own", change("lanes_added", "kept +", "kept + 0 *"))),
    (True, Fault("read before warps have written", drop("sums_met"))),
    (False, Fault("read before threads have written", drop("sums_met"))),
    (True, Fault("rows behind the last one", change("rows_stored", "row_ < rowEnd_", "true"))),
]


def _problem(constant: bool) -> tuple[Matmul, SkinnySchedule]:
    problem = matmul(3, 17 if constant else 24, 1100, constant=constant)
    exact = replace(problem, y=replace(problem.y, dtype=DType.FP32))
    return exact, ALONG if constant else ACROSS


@pytest.mark.parametrize(("constant", "fault"), FAULTS, ids=[fault.name for _, fault in FAULTS])
def test_a_planted_fault_is_seen(
    constant: bool, fault: Fault, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    faulty = plant(SKINNY, fault)
    with pytest.raises((AssertionError, EmulatorError)):
        check_matmul(checking_execution, faulty, *_problem(constant), integers=True)


@pytest.mark.parametrize("constant", [True, False])
def test_without_a_fault_the_same_is_right(
    constant: bool, checking_execution: Any, check_matmul: Callable[..., None]
) -> None:
    check_matmul(checking_execution, SKINNY, *_problem(constant), integers=True)


def test_machine_code_asks_for_a_step_of_b_at_once_and_in_front_of_the_wait(
    tmp_path: Path,
) -> None:
    problem = matmul(1, 4096, 25088, constant=True)
    schedule = SkinnySchedule(1, 4, threads_k=256, threads_n=1, depth=2, prefetch=1, early=1)
    assert SKINNY.why_illegal(problem, schedule, find_target("h100")) is None
    (source,) = SKINNY.instantiate(problem, schedule)
    kernel = load_nvrtc().compile(source, "sm_90a")
    assert not kernel.resources.spills
    code = re.findall(
        r"\b(LDG\.E\.NA\S*128|LDG\.E\.128|ACQBULK|FFMA|BRA)", listing(kernel.cubin, tmp_path)
    )
    wait = code.index("ACQBULK")
    assert code[:wait] == ["LDG.E.NA.LTC256B.128"] * 8, "a step of b, by L1, and nothing else"
    loop = code[wait:]
    asked = [place for place, name in enumerate(loop) if name.startswith("LDG.E.NA")]
    assert len(asked) == 8
    assert "FFMA" not in loop[asked[0] : asked[-1]], (
        "the next step's loads stand in front of the sums"
    )


@pytest.mark.parametrize("name", ["t4", "b200"])
def test_older_and_newer_gpus_have_it_too(name: str) -> None:
    problem = matmul(2, 1000, 1280, constant=True)
    (source,) = SKINNY.instantiate(problem, replace(ALONG, block_m=2))
    assert not load_nvrtc().compile(source, find_target(name).arch).resources.spills
