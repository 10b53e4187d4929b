"""What products of warpgroups read and add to is left alone until they have ended."""

from pathlib import Path

import pytest
from support.machine_code.beside_products import computed_beside
from support.machine_code.disassembly import listing
from support.machine_code.products_in_flight import products_from_registers, touched_in_flight
from support.problems.network_layers import dense, resnet
from support.problems.warpgroup_layers import at, limited

from wpk.build import load_nvrtc
from wpk.dtypes import Precision
from wpk.problems import Problem
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.wgmma.multicast import ROWS
from wpk.schedules.wgmma.tiles import WgmmaSchedule

TILES = {
    "one box": WgmmaSchedule(64, 64, 64, 3, early=1),
    "two warpgroups": WgmmaSchedule(128, 64, 64, 3),
    "two boxes": WgmmaSchedule(128, 64, 128, 2, early=1),
    "four boxes": WgmmaSchedule(64, 16, 256, 2),
    "wide": WgmmaSchedule(64, 128, 64, 3),
    "shared": WgmmaSchedule(64, 128, 64, 4, early=1, share=ROWS),
    "three warpgroups": WgmmaSchedule(192, 192, 64, 3),
    "cluster": WgmmaSchedule(64, 64, 64, 3, split=2, cluster=1),
    "split": WgmmaSchedule(64, 32, 64, 4, split=4),
    "staying": WgmmaSchedule(128, 64, 64, 3, early=1, persistent=132),
}

LOOP = """
        /*0100*/                   HGMMA.64x64x16.F32 R24, R88, gdesc[UR4], R24, gsb0 ;
.L_x_1:
        /*0110*/                   LDG.E R{register}, desc[UR8][R2.64] ;
        /*0120*/                   WARPGROUP.DEPBAR.LE gsb0, {groups} ;
        /*0130*/                   IMAD R90, R1, 0x2, R2 ;
        /*0140*/                   HGMMA.64x64x16.F32 R24, R92, gdesc[UR4], R24, gsb0 ;
        /*0150*/               @P1 BRA `(.L_x_1) ;
        /*0160*/                   EXIT ;
"""


def layers(precision: Precision) -> dict[str, tuple[str, Problem]]:
    plain = resnet(c=192, n=32, precision=precision)
    return {
        "lower limits": ("conv_wgmma", limited(plain, upper=False)),
        "both limits": ("conv_wgmma", limited(plain, upper=True)),
        "convolution": ("conv_wgmma", plain),
        "product": ("gemm_wgmma", dense(512, 512, 1024, precision=precision)),
    }


LAYERS = (
    (Precision.FP16, "lower limits"),
    (Precision.FP16, "both limits"),
    (Precision.TF32, "lower limits"),
    (Precision.FP32, "lower limits"),
    (Precision.FP32, "convolution"),
    (Precision.FP32, "product"),
    (Precision.FP16, "convolution"),
    (Precision.BF16, "product"),
)
COMBINATIONS = [
    pytest.param(
        *layer,
        tile,
        marks=[] if number % len(LAYERS) == place else [pytest.mark.exhaustive],
    )
    for place, layer in enumerate(LAYERS)
    for number, tile in enumerate(TILES)
    if tile != "three warpgroups" or (layer[0] is not Precision.FP32 and "limits" not in layer[1])
]
"""Of them the default tests try a diagonal."""


@pytest.mark.parametrize(("precision", "layer", "tile"), COMBINATIONS)
def test_products_have_their_registers_to_themselves(
    precision: Precision, layer: str, tile: str, tmp_path: Path
) -> None:
    name, problem = layers(precision)[layer]
    (source,) = TEMPLATE_OF[name].instantiate(problem, at(TILES[tile], precision))
    text = listing(load_nvrtc().compile(source, "sm_90a").cubin, tmp_path)
    from_registers = precision is Precision.FP32 or "limits" in layer
    assert bool(products_from_registers(text)) == from_registers
    assert touched_in_flight(text) == []


@pytest.mark.parametrize(
    ("register", "groups", "wrong"),
    [
        *(
            (86, 0, False),
            (88, 0, True),
            (91, 0, True),
            (92, 0, True),
            (96, 0, False),
            (96, 1, True),
        ),
        *((23, 0, False), (24, 0, True), (55, 0, True), (56, 0, False)),
    ],
)
def test_what_is_written_too_early_is_found(register: int, groups: int, wrong: bool) -> None:
    """Of 88 to 91 and, around the loop, 92 to 95; 90 is written behind the wait. 24 to 55 are added to."""
    found = touched_in_flight(LOOP.format(register=register, groups=hex(groups)))
    assert bool(found) == wrong


STRAIGHT = """
        /*0100*/                   HGMMA.64x64x16.F32 R24, R88, gdesc[UR4], R24 ;
        /*0110*/                   HGMMA.64x64x16.F32 R24, R92, gdesc[UR4], R24, gsb0 ;
        /*0120*/                   HGMMA.64x64x16.F32 R24, R96, gdesc[UR4], R24, gsb0 ;
        /*0130*/                   WARPGROUP.DEPBAR.LE gsb0, {groups} ;
        /*0140*/                   LDSM.16.M88.4 R{register}, [R1] ;
        /*0150*/                   EXIT ;
"""


@pytest.mark.parametrize(
    ("register", "groups", "wrong"),
    [(88, 1, False), (92, 1, False), (96, 1, True), (93, 1, True), (88, 2, True), (96, 0, False)],
)
def test_a_wait_leaves_the_youngest_groups_running(register: int, groups: int, wrong: bool) -> None:
    found = touched_in_flight(STRAIGHT.format(register=register, groups=hex(groups)))
    assert bool(found) == wrong


def test_an_accumulator_that_is_read_too_early_is_found() -> None:
    text = LOOP.format(register=20, groups="0x0")
    assert not touched_in_flight(text)
    (found,) = touched_in_flight(text.replace("desc[UR8][R2.64]", "desc[UR8][R30.64]"))
    assert "R30.64" in found


BESIDE = """
        /*0100*/                   HGMMA.64x64x16.F32 R24, gdesc[UR4], R24, gsb0 ;
        /*0110*/                   HGMMA.64x64x16.F32 R56, R88, gdesc[UR4], R56, gsb0 ;
        /*0120*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
{here}
        /*0140*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
{behind}
        /*0160*/                   EXIT ;
"""
NUMBERS = """
        /*0130*/                   MUFU.EX2 R24, R24 ;
        /*0131*/                   MUFU.EX2 R25, R25 ;
        /*0132*/                   MUFU.RCP R25, R25 ;"""


def test_what_is_computed_behind_the_wait_is_beside_nothing() -> None:
    assert computed_beside(BESIDE.format(here=NUMBERS, behind=""), "MUFU.EX2") == 2
    assert computed_beside(BESIDE.format(here="", behind=NUMBERS), "MUFU.EX2") == 0
    with pytest.raises(ValueError, match="none leaves 1 and then 0"):
        computed_beside(LOOP.format(register=20, groups="0x0"), "MUFU.EX2")
