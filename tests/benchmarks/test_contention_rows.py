"""Instructions beside products: kernels are what they say, and shares of work at once are told."""

import re
from pathlib import Path

from rows.contention import judge
from subjects.contention import A_ROUND, INSTRUCTIONS, WIDTHS, Cycles, source
from support.machine_code.disassembly import listing

from wpk.build import count_tensor_core_instructions, load_nvrtc

ISSUED = {
    "multiply_add": "FFMA",
    "minimum": "FMNMX",
    "power_of_two": "MUFU.EX2",
    "gelu": "MUFU.EX2",
}


def test_a_round_is_so_many_instructions_and_products_wait_for_nothing(tmp_path: Path) -> None:
    compiled = load_nvrtc().compile(source("gelu", 64), "sm_90a")
    spilled = re.findall(r"(\d+) bytes spill", compiled.log)
    assert spilled
    assert {int(each) for each in spilled} == {0}
    assert "serialized" not in compiled.log
    parts = re.split(r"^\.text\.(\w+):", listing(compiled.cubin, tmp_path), flags=re.MULTILINE)
    texts = dict(zip(parts[1::2], parts[2::2], strict=True))
    counted = count_tensor_core_instructions(compiled.cubin)
    for instruction in INSTRUCTIONS:
        for width in WIDTHS:
            text = texts[source(instruction, width).entry]
            assert "hgmma.f16" in counted[source(instruction, width).entry]
            assert len(re.findall(rf"\b{re.escape(ISSUED[instruction])}\b", text)) == A_ROUND
            assert text.count(f"HGMMA.64x{width}x16") >= 4


def test_work_at_once_is_told_in_shares_of_what_each_does_alone() -> None:
    cycles = {
        "2 warps, 0 warpgroups": Cycles(10.0, None),
        "0 warps, 2 warpgroups": Cycles(None, 30.0),
        "2 warps, 2 warpgroups": Cycles(20.0, 40.0),
    }
    outcome = judge({"gelu": cycles})
    assert "gelu 1.25" in outcome.summary
    assert outcome.figures["gelu"]["2 warps, 2 warpgroups"]["product"] == 40.0
