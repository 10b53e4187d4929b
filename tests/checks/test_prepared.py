"""The quick test of a candidate's bytes: it passes what the thorough one passes, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from wpk import blocks
from wpk.blocks import BLOCK, by_blocks
from wpk.checks.allowance import Allowance
from wpk.checks.allowed import allow, same
from wpk.checks.bounded import Floats
from wpk.checks.operator_reference import Reference
from wpk.checks.prepared import StepCase, prepare
from wpk.checks.region import OutputRegion
from wpk.dtypes import DType
from wpk.execution import Bytes
from wpk.extent import Extent
from wpk.lowering.program import Value
from wpk.pipeline import optimize
from wpk.plan.plan import Buffer, Plan
from wpk.plan.plan_file import read_plan
from wpk.plan.tensors import Tensors
from wpk.problems import Access, Tensor

N, C, H, W, PADDING, OFFSET, SIZE = 2, 5, 3, 4, 3, 64, 1027
"""Channels last, three zeros after every five channels, in a buffer with bytes before and after."""

STRIDES = (H * W * (C + PADDING), 1, W * (C + PADDING), C + PADDING)
FLOATS = [DType.FP16, DType.BF16, DType.FP32]


def prepared(
    dtype: DType, tolerance: float | None, *, is_copy: bool = False, first: float | None = None
) -> StepCase:
    rng = np.random.default_rng(0)
    expected = rng.normal(size=(N, C, H, W)) if dtype.is_float else rng.integers(0, 2, (N, C, H, W))
    expected[0, 0, :, 0] = 0, 1, first or 0
    if is_copy:
        expected = expected.astype(dtype.numpy)
    value = Value(
        name="y",
        dtype=dtype,
        leading=Extent(N),
        shape=(N, C, H, W),
        strides=STRIDES,
        padding=PADDING,
        buffer="b",
        offset=OFFSET,
        logical_shape=(N, C, H, W),
    )
    size = OFFSET + (dtype.bytes - 1) * N * H * W * (C + PADDING) + SIZE
    image = rng.integers(0, 256, size, dtype=np.uint8)
    output = OutputRegion(image, value, Access(Tensor(dtype, STRIDES, PADDING), (N, C, H, W)), {})
    output.poison()
    images = {"b": image, "x": rng.integers(0, 256, 203, dtype=np.uint8)}
    allowed = None
    if tolerance is not None:
        allowed = Allowance.known(np.full((N, C, H, W), tolerance))
    return StepCase(images, output, expected, allowed, is_copy)


def after(given: StepCase, error: float = 0.0) -> dict[str, Bytes]:
    """What a step leaves that is right but for an error of all elements."""
    left = {name: image.copy() for name, image in given.images.items()}
    region = OutputRegion(left["b"], given.output.value, given.output.access, {})
    region.elements()[...] = (given.expected + error).astype(given.output.value.dtype.numpy)
    padding = region.padding()
    assert padding is not None
    padding[...] = 0
    return left


def passes_thoroughly(given: StepCase, left: dict[str, Bytes]) -> bool:
    return given.compare(left).passed and not given.stray(left) and not given.dirty_padding(left)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("error", "right"), [(0.0, True), (0.04, True), (0.2, False)])
def test_elements_fit_within_their_tolerance(dtype: DType, error: float, right: bool) -> None:
    given = prepared(dtype, 0.1)
    left = after(given, error)
    assert passes_thoroughly(given, left) is right
    assert given.fits(left) is right


@pytest.mark.parametrize(
    "place", [(0, 0, 0, 0), (0, C - 1, H - 1, W - 1), (1, C - 1, H - 1, W - 1)]
)
def test_every_block_must_fit(place: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 32)
    given = prepared(DType.FP32, 0.1)
    left = after(given)
    assert given.fits(left)
    region = OutputRegion(left["b"], given.output.value, given.output.access, {})
    region.elements()[place] += 10
    assert not given.fits(left)


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT32, DType.INT64, DType.BOOL])
def test_exact_elements_fit(dtype: DType) -> None:
    given = prepared(dtype, None)
    assert given.fits(after(given))
    assert passes_thoroughly(given, after(given))
    assert not given.fits({**after(given), "b": given.images["b"]})


@pytest.mark.parametrize("dtype", [*FLOATS, DType.INT32])
def test_a_copy_fits(dtype: DType) -> None:
    given = prepared(dtype, None, is_copy=True)
    assert given.fits(after(given))
    assert passes_thoroughly(given, after(given))


@pytest.mark.parametrize("dtype", [*FLOATS, DType.INT8, DType.INT64])
def test_every_byte_counts(dtype: DType) -> None:
    """Negative control: one flipped bit anywhere is judged as the thorough check judges it."""
    given = prepared(dtype, 0.02 if dtype.is_float else None)
    left = after(given)
    assert given.fits(left)
    refused = _judged_alike(given, left)
    elements = N * C * H * W * dtype.bytes * 3
    assert refused >= 3 * sum(each.size for each in left.values()) - elements


@pytest.mark.parametrize("dtype", [DType.INT8, DType.UINT8, DType.INT32, DType.BOOL])
def test_what_is_undecided_is_judged_as_thoroughly(dtype: DType) -> None:
    given = prepared(dtype, 0.0)
    assert given.tolerance is not None
    given.tolerance.whole[1, :3] = np.array([1.0, 2.0, np.inf])[:, None, None]
    left = after(given)
    if dtype in (DType.INT8, DType.INT32):  # on both sides of zero
        given.expected[1, 2] -= 1
    assert given.fits(left) is passes_thoroughly(given, left) is True
    refused = _judged_alike(given, left, every=5)
    assert 0 < refused < 3 * sum(len(range(0, each.size, 5)) for each in left.values())


def _judged_alike(given: StepCase, left: dict[str, Bytes], every: int = 1) -> int:
    """How many flipped bits both checks refuse."""
    refused = 0
    for name, image in left.items():
        for place in range(0, image.size, every):
            for bit in (0, 3, 7):
                image[place] ^= 1 << bit
                fits = given.fits(left)
                assert fits is passes_thoroughly(given, left), (name, place, bit)
                refused += not fits
                image[place] ^= 1 << bit
    return refused


@pytest.mark.parametrize("dtype", FLOATS)
def test_what_was_not_written_does_not_fit(dtype: DType) -> None:
    given = prepared(dtype, 1e30)
    assert given.fits(after(given))
    assert not given.fits(given.images)
    left = after(given)
    OutputRegion(left["b"], given.output.value, given.output.access, {}).elements()[1, 2, 1, 3] = (
        np.nan
    )
    assert not given.fits(left)


@pytest.mark.parametrize("first", [np.nan, 1 / 3])
def test_where_nothing_is_accepted_the_thorough_check_decides(first: float) -> None:
    given = prepared(DType.FP16, 0.0, first=first)
    assert not given.fits(after(given))
    assert not passes_thoroughly(given, after(given))


def test_nan_is_right_where_nan_is_expected() -> None:
    given = prepared(DType.FP16, 0.1, first=np.nan)
    assert given.fits(after(given))
    left = after(given, 0.0)
    OutputRegion(left["b"], given.output.value, given.output.access, {}).elements()[0, 0, 2, 0] = (
        1.0
    )
    assert not given.fits(left)
    assert not passes_thoroughly(given, left)


def test_a_copy_of_a_part_leaves_the_rest() -> None:
    whole = prepared(DType.FP32, None, is_copy=True)
    access = Access(Tensor(DType.FP32, STRIDES, 0), (N, 2, H, W))
    given = replace(
        whole, output=replace(whole.output, access=access), expected=whole.expected[:, :2]
    )
    left = {name: image.copy() for name, image in given.images.items()}
    OutputRegion(left["b"], given.output.value, access, {}).elements()[...] = given.expected
    assert given.fits(left)
    assert passes_thoroughly(given, left)
    OutputRegion(left["b"], given.output.value, whole.output.access, {}).elements()[1, 2, 0, 0] = 0
    assert not given.fits(left)
    assert given.stray(left) == 4


def test_where_a_step_computes_other_elements_the_thorough_check_decides() -> None:
    whole = prepared(DType.FP32, 0.1)
    access = Access(Tensor(DType.FP32, STRIDES, 0), (N, 2, H, W))
    given = replace(whole, output=replace(whole.output, access=access))
    left = after(whole)
    assert given.compare(left).passed
    assert given.stray(left) > 0
    assert not given.fits(left)


def deferred(given: StepCase, floor: float) -> tuple[StepCase, list[str]]:
    """The case with a floor, and a note whenever the whole tolerance is computed."""
    assert given.tolerance is not None
    whole, asked = given.tolerance.whole, list[str]()

    def compute() -> Floats:
        asked.append("whole")
        return whole

    return replace(given, tolerance=Allowance(np.full_like(whole, floor), compute)), asked


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("error", "right", "computed"),
    [(0.0, True, 0), (0.01, True, 0), (0.08, True, 1), (0.2, False, 1)],
)
def test_what_a_floor_does_not_accept_the_tolerance_decides(
    dtype: DType, error: float, right: bool, computed: int
) -> None:
    given, asked = deferred(prepared(dtype, 0.1), 0.04)
    left = after(given, error)
    assert given.fits(left) is right
    assert passes_thoroughly(given, left) is right
    assert len(asked) == computed
    assert given.compare(left).at_most is not computed


def test_one_wrong_element_is_found_behind_a_floor() -> None:
    """Negative control: however few differ, and by however little more than is allowed."""
    given, asked = deferred(prepared(DType.FP32, 0.1), 0.04)
    left = after(given)
    region = OutputRegion(left["b"], given.output.value, given.output.access, {})
    region.elements()[1, C - 1, 0, 1] += np.float32(0.1001)
    assert not given.fits(left)
    assert given.compare(left).wrong == 1
    assert asked == ["whole"]


def test_intervals_of_both_kinds_count_once_they_are_held() -> None:
    given, _ = deferred(prepared(DType.FP16, 0.1), 0.04)
    assert given.fits(after(given))
    few = given.bytes
    assert given.fits(after(given, 0.08))
    assert given.bytes == few + 2 * given.output.image.size


def test_words_across_each_other_are_left_to_the_thorough_check() -> None:
    given = prepared(DType.FP32, None)
    value = replace(given.output.value, offset=OFFSET + 2)
    given = replace(
        given,
        output=replace(given.output, value=value),
        expected=given.expected.astype(np.float32).astype(np.float64),
    )
    given.output.poison()
    left = after(given)
    assert passes_thoroughly(given, left)
    assert not given.fits(left)


@pytest.mark.parametrize("dtype", [DType.FP16, DType.FP32, DType.INT8])
def test_the_memory_that_it_takes_is_that_of_images_and_intervals(dtype: DType) -> None:
    given = prepared(dtype, 0.1)
    allowed = allow(
        given.output, lambda image: replace(given.output, image=image).elements(),
        given.expected, None if given.tolerance is None else given.tolerance.whole,
    )  # fmt: skip
    assert allowed is not None
    held = sum(each.nbytes for each in given.images.values())
    held += allowed.first.nbytes + allowed.span.nbytes
    assert held <= given.bytes < held + 2 * dtype.bytes


PLACES = {"p_last": 64, "a": 2048, "x": 4096, "y": 16}
"""Offsets in one buffer: of what a step reads and writes, of another value, of one that is not known."""

DIMS = {"batch": 2}


@pytest.fixture
def plan(small_model: Path, tmp_path: Path, one_cubin: None) -> Plan:
    """The small network's, with some values in one buffer."""
    optimize(small_model, tmp_path / "p", target="h200", precision="fp32", check="off")
    plan = read_plan(tmp_path / "p").plan
    values = {
        name: replace(value, buffer="shared", offset=PLACES[name]) if name in PLACES else value
        for name, value in plan.values.items()
    }
    return replace(plan, values=values, buffers={**plan.buffers, "shared": Buffer("shared", 8192)})


@pytest.mark.parametrize("copies", [False, True])
def test_a_step_is_given_all_that_is_known_of_its_buffers(plan: Plan, copies: bool) -> None:
    rng = np.random.default_rng(0)
    memory = {
        name: rng.standard_normal((2, *value.logical_shape[1:])).astype(np.float32)
        for name, value in plan.values.items()
        if name != "y"
    }
    right = Reference(
        "", {"a": np.zeros((2, 6, 1, 1))}, {"a": Allowance.known(np.full((2, 6, 1, 1), 0.5))}
    )
    step = next(each for each in plan.steps if each.operator.outputs == ("a",))
    found = prepare(
        Tensors(plan.values, plan.buffers, {}, {}), step, DIMS, memory, None if copies else right
    )
    image = np.zeros(8192, np.uint8)
    for name in ("p_last", "x"):
        data = memory[name].view(np.uint8).ravel()
        image[PLACES[name] : PLACES[name] + data.size] = data
    image[PLACES["a"] : PLACES["a"] + 2 * 6 * 4] = 0xFF
    assert found.images.keys() == {"shared"}
    np.testing.assert_array_equal(found.images["shared"], image)
    assert found.output.image is found.images["shared"]
    assert found.is_copy is copies
    if copies:
        assert found.expected.ravel().tolist() == memory["a"].ravel().tolist()
        assert found.tolerance is None
    else:
        assert found.expected is right.outputs["a"]
        assert found.tolerance is right.tolerances["a"]


def test_every_buffer_of_a_step_has_an_image_and_its_weights_have_none(plan: Plan) -> None:
    step = next(each for each in plan.steps if each.operator.outputs == ("r_last",))
    right = Reference("", {"r_last": np.zeros((2, 9, 7, 6))}, {})
    found = prepare(Tensors(plan.values, plan.buffers, {}, {}), step, DIMS, {}, right)
    sizes = {name: image.size for name, image in found.images.items()}
    assert sizes == {"shared": 8192, "r_last": 2 * 9 * 7 * 6 * 4}
    assert found.tolerance is None


@pytest.mark.parametrize("size", [0, 1, 7, 8, 8 * BLOCK + 3, 40 * 8 * BLOCK + 5])
def test_the_same_bytes(size: int) -> None:
    left = np.arange(size, dtype=np.uint32).astype(np.uint8)
    right = left.copy()
    assert same(left, right)
    for place in {0, size // 2, size - 1} if size else ():
        right[place] ^= 4
        assert not same(left, right)
        right[place] ^= 4


@pytest.mark.parametrize("count", [0, 1, BLOCK, BLOCK + 1, 100 * BLOCK + 9])
def test_blocks_cover_everything_in_order(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for cores in (1, 3):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: range(cores))
        places = by_blocks(count, lambda block: range(block.start, block.stop))
        assert [place for each in places for place in each] == list(range(count))


def test_an_error_in_a_block_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        by_blocks(100 * BLOCK, lambda block: 1 // (block.start - 50 * BLOCK))


def test_every_output_is_judged() -> None:
    """A step with a second output: right if both are, and wrong if either is not."""
    first, second = prepared(DType.FP16, 0.1), prepared(DType.FP32, 0.1)
    images = {"b": first.images["b"], "c": second.images["b"], "x": first.images["x"]}
    value = replace(second.output.value, buffer="c", name="z")
    beside = replace(second, images=images, output=replace(second.output, value=value))
    both = replace(first, images=images, beside=(beside,))
    right = {**after(first), "c": after(second)["b"]}
    assert both.fits(right)
    assert passes_thoroughly(both, right)
    assert both.bytes > first.bytes
    for left in (
        {**right, "c": after(second, 0.2)["b"]},
        {**right, "b": after(first, 0.2)["b"]},
        {**right, "c": images["c"]},
    ):
        assert not both.fits(left)
        assert not both.compare(left).passed
    stray = right["c"].copy()
    stray[0] ^= 1
    assert not both.fits({**right, "c": stray})
    assert both.stray({**right, "c": stray}) == 1
