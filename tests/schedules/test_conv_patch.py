"""First layers from patches: numbers on the emulator, legality against the header, loads, packing, refusals."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from subjects.problems import channels_last
from support.machine_code.compiled_units import assert_compiles_as_modelled
from support.problems.first_layers import CASES, channels_first, first_layer

from wpk.build import load_nvrtc
from wpk.dtypes import ASKED, DType, Precision
from wpk.errors import CompileError
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.performance.bank_conflicts import passes, phases
from wpk.problems import Convolution, Epilogue, Tensor
from wpk.schedules import packings
from wpk.schedules.conv_patch import ConvPatchTemplate, PatchSchedule
from wpk.targets.registry import find_target

TEMPLATE = ConvPatchTemplate()
H200, V100 = find_target("h200"), find_target("v100")
TILE = PatchSchedule(tile_p=4, tile_q=8, block_n=32, warps_m=2, warps_n=1)
RUN = replace(TILE, tile_p=2, tile_q=16, warps_m=1, warps_n=2, tiles=3, early=1)


def _slow(value: Any) -> Any:
    return pytest.param(value, marks=pytest.mark.slow)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "precision", [Precision.FP16, Precision.FP32, _slow(Precision.BF16), _slow(Precision.TF32)]
)
def test_agrees_with_float64(
    case: str, precision: Precision, fast_execution: Any, check_convolution: Callable[..., None]
) -> None:
    check_convolution(
        fast_execution, TEMPLATE, first_layer(precision=precision, **CASES[case]), TILE
    )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", [Precision.FP16, _slow(Precision.FP32)])
def test_integers_are_exact_under_every_check(
    case: str, precision: Precision, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = first_layer(precision=precision, **CASES[case])
    check_convolution(checking_execution, TEMPLATE, problem, RUN, integers=True)


INPUTS: dict[str, Tensor] = {
    "channels last": channels_last(DType.FP32, 3, 17, 21),
    "channels last, padded": channels_last(DType.FP32, 3, 17, 21, padding=1),
    "half, channels last, padded": channels_last(DType.FP16, 3, 17, 21, padding=5),
    "half, channels first": channels_first(DType.FP16, 3, 17, 21),
    "rows apart": Tensor(DType.FP32, (3 * 17 * 30, 17 * 30, 30, 1), alignment=4),
}


@pytest.mark.parametrize("x", INPUTS.values(), ids=INPUTS)
@pytest.mark.parametrize("schedule", [TILE, RUN], ids=["a tile", "a run"])
def test_reads_any_strides_and_type(
    x: Tensor, schedule: Any, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    check_convolution(checking_execution, TEMPLATE, first_layer(x=x), schedule)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("tiles", [1, 2, 16])
def test_the_batch_is_decided_at_run_time(
    batch: int, tiles: int, checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = replace(first_layer(), n=Extent(2, "n"))
    check_convolution(
        checking_execution, TEMPLATE, problem, replace(TILE, tiles=tiles), batch=batch
    )


def test_epilogue_and_another_layout_behind_it(
    checking_execution: Any, check_convolution: Callable[..., None]
) -> None:
    problem = first_layer(k=21)
    y = channels_first(DType.FP32, 21, problem.p, problem.q)
    tail = apply("Relu", apply("Add", apply("Add", Acc(), Operand(0)), Operand(1)))
    epilogue = Epilogue(tail, (Tensor(DType.FP32, (0, 1, 0, 0)), y))
    problem = replace(problem, y=y, epilogue=epilogue)
    check_convolution(checking_execution, TEMPLATE, problem, RUN)


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("precision", [Precision.FP16, Precision.FP32])
def test_what_is_no_number_reaches_only_the_windows_that_hold_it(
    value: float, precision: Precision, fast_execution: Any
) -> None:
    problem = first_layer(k=16, n=1, precision=precision)
    x = np.random.default_rng(1).uniform(0.5, 1, (1, 3, 17, 21)).astype(np.float32)
    x[0, 1, 8, 10] = value
    w = np.random.default_rng(2).uniform(0.5, 1, (16, 3, 7, 7)).astype(precision.storage.numpy)
    memory = [fast_execution.memory(problem.x, x), packings.pack("patch", w, problem)]
    shape = (1, 16, problem.p, problem.q)
    y = fast_execution.run(TEMPLATE, problem, TILE, memory, shape)
    p, q = np.ogrid[: problem.p, : problem.q]
    holds = (abs(2 * p - 8) <= 3) & (abs(2 * q - 10) <= 3)
    assert (np.isfinite(y) != holds).all()
    if precision is Precision.FP16:  # split, an infinity becomes no number
        np.testing.assert_array_equal(y[:, :, holds], value)


@pytest.mark.parametrize(
    "schedule", [TILE, RUN, replace(TILE, tile_p=1, tile_q=32, warps_n=2)], ids=str
)
@pytest.mark.parametrize("case", ["7x7, stride 2", "3x3", "11x11, stride 4", "5x4, stride 3"])
@pytest.mark.parametrize("precision", [Precision.FP16, Precision.FP32])
def test_matrix_loads_are_those_described_and_free_of_conflicts(
    schedule: PatchSchedule,
    case: str,
    precision: Precision,
    checking_execution: Any,
    check_convolution: Callable[..., None],
) -> None:
    problem = first_layer(precision=precision, **CASES[case])
    check_convolution(checking_execution, TEMPLATE, problem, schedule, integers=True)
    warps = -(-problem.p // schedule.tile_p) * -(-problem.q // schedule.tile_q) * 2
    warps *= schedule.threads // 32
    least = extra = 0
    for access in TEMPLATE.shared_accesses(problem, schedule):
        taken = int(passes(np.asarray([access.addresses], np.int64), access.bytes)[0])
        least += warps * access.count * phases(access.bytes)
        extra += warps * access.count * (taken - phases(access.bytes))
    seen = checking_execution.statistics
    assert (seen.phases["matrix_load"], seen.conflicts["matrix_load"]) == (least, extra)
    assert extra == 0


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("patch", np.float32),
        ("patch", np.float16),
        ("patch", ml_dtypes.bfloat16),
        ("patch_tf32", np.float32),
    ],
)
@pytest.mark.parametrize("case", CASES)
def test_filters_come_back(name: str, dtype: Any, case: str) -> None:
    problem = first_layer(**CASES[case])
    array = np.random.default_rng(1).standard_normal((problem.k, problem.c, *problem.filter))
    array = array.astype(dtype)
    packed = packings.pack(name, array, problem)
    assert packed.nbytes % (32 * problem.k) == 0
    expected = packings.round_to_tf32(array) if name.endswith("tf32") else array
    np.testing.assert_array_equal(packings.unpack(name, packed, problem), expected)


RESNET = replace(
    first_layer(k=64, size=(224, 224), n=1),
    epilogue=Epilogue(
        apply("Relu", apply("Add", Acc(), Operand(0))), (Tensor(DType.FP32, (0, 1, 0, 0)),)
    ),
)
USUAL = PatchSchedule(tile_p=8, tile_q=16, block_n=64, warps_m=4, warps_n=1, early=1)


def test_the_unit_is_the_reviewed_one(assert_golden: Callable[[str, str], None]) -> None:
    (source,) = TEMPLATE.instantiate(RESNET, USUAL)
    (launch,) = TEMPLATE.launches(RESNET, USUAL)
    assert (launch.kernel, launch.entry) == (source.digest, source.entry)
    assert launch.attributes == ("early_launch",)
    assert_golden("schedules/conv_patch.cu", source.text)


@pytest.mark.parametrize("precision", list(ASKED))
@pytest.mark.parametrize("tiles", [1, 4])
def test_the_usual_schedule_compiles_without_spills(precision: Precision, tiles: int) -> None:
    problem = replace(RESNET, precision=precision)
    schedule = replace(USUAL, tiles=tiles, block_n=32 if precision is Precision.FP32 else 64)
    assert_compiles_as_modelled(TEMPLATE, problem, schedule, "hmma")


@pytest.mark.parametrize("n", [1, 32])
@pytest.mark.parametrize("precision", list(ASKED))
def test_work_covers_the_problem(n: int, precision: Precision) -> None:
    problem = replace(RESNET, n=Extent(n), precision=precision)
    total, columns = TEMPLATE.space(problem, H200)
    assert 100 <= len(columns["tiles"]) <= total <= 20_000
    work = TEMPLATE.work(problem, columns, H200)
    assert (work.block_flops * work.blocks >= 2 * problem.macs).all()
    stored = 2.0 * n * 64 * 112 * 112
    assert (work.store_bytes * work.blocks >= stored).all()
    patches = work.blocks * work.block_transactions * H200.transaction_bytes
    assert (patches >= n * 3 * 224 * 224 * 4).all()


ILLEGAL = [
    replace(USUAL, tile_q=12, tile_p=4, warps_m=1),
    replace(USUAL, warps_m=16),
    replace(USUAL, tile_p=3, warps_m=2),
    replace(USUAL, block_n=16, warps_n=2),
    replace(USUAL, block_n=48),
    replace(USUAL, block_n=128, warps_m=2, tile_p=16),
    replace(USUAL, early=2),
    replace(USUAL, tile_p=16, tile_q=64, warps_m=1, block_n=16),
]


@pytest.mark.parametrize("schedule", ILLEGAL, ids=lambda v: str(v).replace(" ", ","))
def test_what_python_refuses_the_header_refuses(schedule: PatchSchedule) -> None:
    assert TEMPLATE.why_illegal(RESNET, schedule, H200) is not None
    (source,) = TEMPLATE.instantiate(RESNET, schedule)
    with pytest.raises(CompileError, match="static assertion"):
        load_nvrtc().compile(source, "sm_90a")


REFUSALS = [
    (replace(RESNET, c=6), H200, "6 channels"),
    (replace(RESNET, c=2, groups=2), H200, "2 groups"),
    (replace(RESNET, transposed=True), H200, "transposed"),
    (replace(RESNET, dilation=(1, 2)), H200, "dilated by (1, 2)"),
    (replace(RESNET, filter=(16, 31)), H200, "128 steps"),
    (replace(RESNET, x=channels_first(DType.INT32, 3, 224, 224)), H200, "int32"),
    (RESNET, V100, "no asynchronous copies"),
]


@pytest.mark.parametrize(("problem", "target", "reason"), REFUSALS)
def test_refuses_in_words(problem: Convolution, target: Any, reason: str) -> None:
    assert reason in str(TEMPLATE.why_not(problem, target))
