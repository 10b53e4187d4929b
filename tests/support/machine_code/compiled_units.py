"""What the compiler makes of a template's unit, beside what the template says of it."""

from __future__ import annotations

from typing import Any

from wpk.build import count_tensor_core_instructions, load_nvrtc
from wpk.dtypes import Precision
from wpk.targets.registry import find_target

H200 = find_target("h200")
NEAR = 32
"""Registers that an estimate may be off."""


def assert_compiles_as_modelled(template: Any, problem: Any, schedule: Any, unit: str) -> None:
    """A legal schedule without spills, of about the registers expected, on one tensor core unit.

    Args:
        template: Of one kernel.
        problem: In any precision.
        schedule: Of the template.
        unit: ``hmma`` or ``hgmma``.
    """
    assert template.why_illegal(problem, schedule, H200) is None
    (source,) = template.instantiate(problem, schedule)
    kernel = load_nvrtc().compile(source, "sm_90a")
    assert not kernel.resources.spills
    estimated = template.work(problem, schedule.columns(), H200).registers[0]
    assert abs(kernel.resources.registers - estimated) <= NEAR
    kind = {Precision.FP16: "f16", Precision.BF16: "bf16"}.get(problem.precision, "tf32")
    assert set(count_tensor_core_instructions(kernel.cubin)[source.entry]) == {f"{unit}.{kind}"}


def assert_legal_compiles_without_spilling(template: Any, problem: Any, step: int) -> None:
    """Of products of warpgroups, which wait for nobody in between.

    Args:
        template: Of one kernel.
        problem: Whose space is compiled.
        step: One of so many legal schedules is.
    """
    _, legal = template.space(problem, H200)
    for row in range(0, len(next(iter(legal.values()))), step):
        schedule = template.schedule(legal, row)
        (source,) = template.instantiate(problem, schedule)
        kernel = load_nvrtc().compile(source, H200.arch)
        assert not kernel.resources.spills, schedule
        assert "serialized" not in kernel.log, schedule
