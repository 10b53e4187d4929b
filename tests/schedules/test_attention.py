"""Attention's templates: numbers in float64 at odd shapes, masks, empty rows, legality."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Fault, change, plant
from support.numbers.attention_numbers import check_attention
from support.problems.attentions import HARD_SWISH, attention

from wpk.build import load_nvrtc
from wpk.dtypes import ASKED, DType, Precision
from wpk.emulator import EmulatorError
from wpk.errors import CompileError
from wpk.extent import Extent
from wpk.libraries.attention_reference import attend
from wpk.problems import Attention, Tensor, Windows
from wpk.schedules.attention_mma import AttentionMmaSchedule, AttentionMmaTemplate
from wpk.schedules.attention_simt import AttentionSimtSchedule, AttentionSimtTemplate
from wpk.schedules.wgmma.attention import AttentionWgmmaSchedule, AttentionWgmmaTemplate
from wpk.targets.registry import find_target

MMA, SIMT, WGMMA = AttentionMmaTemplate(), AttentionSimtTemplate(), AttentionWgmmaTemplate()
TARGET = find_target("h200")
SCHEDULE = AttentionMmaSchedule(warps_m=2, warps_n=2, block_n=16, stages=2)
OF_EACH = [
    (MMA, SCHEDULE),
    (SIMT, AttentionSimtSchedule(warps=3)),
    (WGMMA, AttentionWgmmaSchedule(warpgroups=1, block_n=16, stages=2)),
]


CASES: dict[str, dict[str, Any]] = {
    "one tile": {"queries": 16, "keys": 16, "depth": 16, "batch": (1, 1)},
    "many steps": {"queries": 50, "keys": 150, "depth": 32},
    "odd everything": {"queries": 33, "keys": 77, "depth": 40, "batch": (1, 2)},
    "values of another size": {"queries": 17, "keys": 40, "depth": 64, "width": 24},
    "wide heads": {"queries": 20, "keys": 33, "depth": 128, "batch": (1, 1)},
    "rows of 8 bytes": {"queries": 33, "keys": 45, "depth": 36, "width": 20, "batch": (2, 2)},
    "rows of 4 bytes": {"queries": 19, "keys": 35, "depth": 30, "width": 6, "batch": (1, 3)},
    "a query": {"queries": 1, "keys": 65, "depth": 64, "scale": 0.125},
}
FAST = [("many steps", Precision.FP16), ("many steps", Precision.FP32), ("odd everything", "tf32")]
FAST += [("rows of 8 bytes", "fp16"), ("rows of 4 bytes", "bf16")]


@pytest.mark.parametrize(("case", "precision"), FAST)
def test_tensor_cores_agree_with_float64(case: str, precision: str, fast_execution: Any) -> None:
    check_attention(
        fast_execution, MMA, attention(precision=Precision(precision), **CASES[case]), SCHEDULE
    )


@pytest.mark.parametrize(
    ("warps_m", "warps_n", "depth", "width"),
    [(3, 1, 32, 64), (7, 1, 64, 16), (5, 2, 40, 32)],
)
def test_any_number_of_warps_copies_whole_rows(
    warps_m: int, warps_n: int, depth: int, width: int, checking_execution: Any
) -> None:
    """Of 3 and 7 warps some have nothing to copy: rows come in whole periods of their permutation."""
    problem = attention(125, 70, depth, width=width, batch=(1, 1), scale=0.25)
    schedule = AttentionMmaSchedule(warps_m, warps_n, block_n=16, stages=2)
    assert MMA.why_illegal(problem, schedule, TARGET) is None
    check_attention(checking_execution, MMA, problem, schedule)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", list(ASKED))
def test_all_sizes_agree_with_float64(
    case: str, precision: Precision, fast_execution: Any, checking_execution: Any
) -> None:
    problem = attention(precision=precision, **CASES[case])
    schedule = replace(SCHEDULE, warps_m=1, warps_n=1, stages=1) if case == "one tile" else SCHEDULE
    check_attention(checking_execution, MMA, problem, schedule)
    check_attention(fast_execution, SIMT, problem, AttentionSimtSchedule(warps=2))


def test_ordinary_cores_agree_with_float64_on_tensors_that_lie_in_any_way(
    checking_execution: Any,
) -> None:
    problem = attention(5, 43, 7, width=9, precision=Precision.FP16, batch=(2, 1))
    assert MMA.why_not(problem, TARGET) is not None
    across = Tensor(DType.FP16, (43 * 7, 0, 1, 43), 0, 2)
    problem = replace(problem, k=across, y=replace(problem.y, strides=(80, 0, 16, 1), padding=7))
    check_attention(checking_execution, SIMT, problem, AttentionSimtSchedule(warps=4))


@pytest.mark.parametrize(("template", "schedule"), OF_EACH)
@pytest.mark.parametrize("zero", [False, True])
def test_masks_empty_rows_and_large_scores(
    template: Any, schedule: Any, zero: bool, fast_execution: Any
) -> None:
    """-inf everywhere gives no number, or 0 where the graph says so; -inf in front is no more than 0."""
    queries, keys = 20, 70
    problem = attention(queries, keys, 32, mask=(0, 0, keys, 1), scale=0.5, zero=zero)
    masks = np.zeros((queries, keys), np.float32)
    masks[np.triu_indices(queries, 1, keys)] = -np.inf
    masks[3] = -np.inf
    masks[5] = np.finfo(np.float32).min
    masks[6, :60] = -np.inf  # the first steps of the row are empty
    masks[7] = np.linspace(-300, 300, keys)  # every step scales the earlier ones to nothing
    check_attention(fast_execution, template, problem, schedule, masks=masks, spread=2.0)


def test_takes_a_free_batch(fast_execution: Any) -> None:
    problem = attention(18, 34, 16, batch=(1, 2))
    strides = {"q": 18 * 32, "k": 34 * 32, "v": 34 * 32, "y": 18 * 32}
    tensors = {
        name: replace(getattr(problem, name), strides=(s, *getattr(problem, name).strides[1:]))
        for name, s in strides.items()
    }
    problem = replace(problem, batch=(Extent(1, "N"), 2), **tensors)
    for template, schedule in OF_EACH:
        check_attention(fast_execution, template, problem, schedule, leading=3)


SHARED = "head / Problem::sharing"
GROUPED = attention(21, 37, 16, batch=(2, 6), width=24, sharing=3, mask=(0, 0, 37, 1), scale=0.5)


@pytest.mark.parametrize(("template", "schedule"), OF_EACH)
def test_heads_may_share_keys_and_values(template: Any, schedule: Any, fast_execution: Any) -> None:
    masks = np.random.default_rng(1).standard_normal((21, 37)).astype(np.float32)
    check_attention(fast_execution, template, GROUPED, schedule, masks=masks)
    fault = Fault(
        "values of another head",
        change("head_shared", SHARED, f"0 * {SHARED}"),
    )
    with pytest.raises(AssertionError, match="times what rounding explains"):
        check_attention(fast_execution, plant(template, fault), GROUPED, schedule, masks=masks)


BEHIND = attention(
    *(21, 37, 16),
    batch=(2, 3),
    width=40,
    mask=(0, 0, 37, 1),
    scale=0.5,
    ending=HARD_SWISH,
    added=DType.FP16,
)


@pytest.mark.parametrize(("template", "schedule"), OF_EACH)
def test_computes_what_follows_the_result(
    template: Any, schedule: Any, fast_execution: Any
) -> None:
    masks = np.random.default_rng(1).standard_normal((21, 37)).astype(np.float32)
    check_attention(fast_execution, template, BEHIND, schedule, masks=masks)
    place = "valid, at.outer, head, at.row, column"
    fault = Fault(
        "what lies behind the result is that of another head",
        change("epilogue_place", place, place.replace("head", "0 * head")),
    )
    with pytest.raises(AssertionError, match="times what rounding explains"):
        check_attention(fast_execution, plant(template, fault), BEHIND, schedule, masks=masks)


def _windowed(windows: Windows, images: int, **more: Any) -> Attention:
    sizes = (windows.tokens, windows.tokens, 16)
    return attention(*sizes, batch=(images * windows.count, 2), windows=windows, **more)


WINDOWS = {
    "parted": Windows(4, 9, 2, 3),
    "rolled": Windows(8, 10, 4, 5, shift=(2, 3)),
    "across": Windows(6, 9, 3, 3, across=True),
}


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize(
    ("template", "schedule"), [(MMA, SCHEDULE), (SIMT, AttentionSimtSchedule(warps=3))]
)
def test_windows_are_read_and_written_where_their_image_lies(
    name: str, template: Any, schedule: Any, fast_execution: Any
) -> None:
    windows = WINDOWS[name]
    n = windows.tokens
    problem = _windowed(windows, 2, width=24, mask=(0, 0, n, 1), scale=0.5, added=DType.FP16)
    masks = np.random.default_rng(1).standard_normal((n, n)).astype(np.float32)
    schedule = replace(schedule, warps_m=1, warps_n=1, stages=1) if template is MMA else schedule
    assert list(problem.contradictions()) == []
    check_attention(fast_execution, template, problem, schedule, masks=masks)
    old, new = "< Extent", "< Extent + 99" if name == "rolled" else "< 0"
    fault = Fault("places are not wrapped", change("window_rolled", old, new))
    if name != "rolled":
        token = "window * Size + token"
        fault = Fault("places of a window", change("window_place", token, "token * Size + window"))
    if name == "across":
        token = "token * Windows + window"
        fault = Fault("places of a window", change("window_place", token, "window * Size + token"))
    with pytest.raises((AssertionError, EmulatorError)):
        check_attention(fast_execution, plant(template, fault), problem, schedule, masks=masks)


def test_the_reference_of_windows_is_that_of_windows_cut_out() -> None:
    windows = WINDOWS["rolled"]
    rng, n = np.random.default_rng(4), windows.tokens
    problem = _windowed(windows, 2)
    images = [rng.standard_normal((2, 2, 8, 10, 16)) for _ in range(3)]

    def cut(image: Any) -> Any:
        rolled = np.roll(image, (-2, -3), (2, 3)).reshape(2, 2, 2, 4, 2, 5, 16)
        return rolled.transpose(0, 2, 4, 1, 3, 5, 6).reshape(8, 2, n, 16)

    def lying(image: Any) -> Any:
        return image.reshape(2, 2, 4, n, 16).swapaxes(1, 2).reshape(8, 2, n, 16)

    wanted, _ = attend(replace(problem, windows=None), *map(cut, images), [])
    found, _ = attend(problem, *map(lying, images), [])
    whole = found.reshape(2, 4, 2, n, 16).swapaxes(1, 2).reshape(2, 2, 8, 10, 16)
    np.testing.assert_allclose(cut(whole), wanted, rtol=1e-12)


def test_the_reference_of_an_epilogue_is_the_epilogue_of_the_reference() -> None:
    rng = np.random.default_rng(3)
    q, k, v, x = (rng.standard_normal((2, 3, 5, 16)) for _ in range(4))
    problem = attention(5, 5, 16, ending=HARD_SWISH, added=DType.FP32)
    bare, _ = attend(replace(problem, epilogue=None), q, k, v, [])
    found, allowed = attend(problem, q, k, v, [x])
    np.testing.assert_allclose(found, bare * np.clip(bare / 6 + 0.5, 0, 1) + x, rtol=1e-12)
    assert allowed.max() < 0.05 * np.abs(found).max()


def test_the_reference_of_shared_heads_is_that_of_repeated_ones() -> None:
    rng = np.random.default_rng(2)
    q, k, v = (rng.standard_normal((2, heads, 5, 16)) for heads in (6, 2, 2))
    problem = attention(5, 5, 16, batch=(2, 6), sharing=3)
    repeated = attend(replace(problem, sharing=None), q, k.repeat(3, 1), v.repeat(3, 1), [])
    for shared, each in zip(attend(problem, q, k, v, []), repeated, strict=True):
        np.testing.assert_array_equal(shared, each)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stages": 4}, "one step of the 77 keys at least, and no more than there are (warps_n=2"),
        ({"warps_n": 8, "stages": 1}, "each warp has some of the 77 keys (warps_n=8, block_n=16)"),
        ({"warps_m": 4}, "each warp has some of the 33 queries (warps_m=4)"),
        ({"block_n": 24}, "a warp has whole pairs of tiles of 8 keys (block_n=24)"),
        ({"early": 2}, "early is 0 or 1 (early=2)"),
        ({"warps_m": 1, "warps_n": 1, "block_n": 128, "stages": 1}, "copies at most 16 pieces"),
    ],
)
def test_says_why_a_schedule_is_illegal(change: dict[str, int], words: str) -> None:
    problem = attention(33, 77, 40)
    assert MMA.why_illegal(problem, SCHEDULE, TARGET) is None
    assert words in str(MMA.why_illegal(problem, replace(SCHEDULE, **change), TARGET))


@pytest.mark.slow
@pytest.mark.parametrize("step", [45, pytest.param(5, marks=pytest.mark.exhaustive)])
def test_what_is_legal_compiles_without_spilling(step: int) -> None:
    for precision in (Precision.FP16, Precision.FP32):
        problem = attention(128, 128, 64, precision=precision, mask=(0, 0, 128, 1), batch=(1, 12))
        _, legal = MMA.space(problem, TARGET)
        for row in range(0, len(legal["warps_m"]), step):
            schedule = MMA.schedule(legal, row)
            (source,) = MMA.instantiate(problem, schedule)
            resources = load_nvrtc().compile(source, TARGET.arch).resources
            # ptxas may give up a word to have as many registers as another block wants.
            assert resources.spill_store_bytes <= 16, schedule


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stages": 4}, "the ring has one step of the 77 keys at least"),
        ({"block_n": 24}, "whole pairs of tiles of 8 keys"),
        ({"early": 2}, "early is 0 or 1"),
    ],
)
def test_what_is_illegal_does_not_compile(change: dict[str, int], words: str) -> None:
    (source,) = MMA.instantiate(attention(33, 77, 40), replace(SCHEDULE, **change))
    with pytest.raises(CompileError, match=words):
        load_nvrtc().compile(source, TARGET.arch)
