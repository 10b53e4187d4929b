"""Every primitive of the portable headers does in the emulator what its header says."""

from math import erf

import ml_dtypes
import numpy as np
import pytest
from support.faults.planter import Edit, drop, whole

from wpk.emulator import CHECKING, FAST, Mode

both_modes = pytest.mark.parametrize("mode", [FAST, CHECKING], ids=["fast", "checking"])

_INTERESTING = np.array(
    [
        "0",
        "-0",
        "1",
        "-1.5",
        "2.5",
        "3.5",
        "65504",
        "65520",
        "1e-8",
        "6e-8",
        "1e38",
        "1.00048828125",
        "0.1",
        "-0.3",
        "127.6",
        "128",
        "-128.9",
        "255.9",
        "256",
        "-1",
        "2147483520",
        "-2147483648",
        "3e9",
        "1e19",
        "-1e19",
        "inf",
        "-inf",
        "1.0039062",
        "1.01171875",
        "3.3895314e38",
    ],
    np.float32,
)


@pytest.mark.parametrize(
    ("entry", "dtype"),
    [("convert_half", np.float16), ("convert_bfloat16", ml_dtypes.bfloat16)],
)
def test_rounds_to_the_nearest_even_of_a_floating_type(emulate, entry, dtype):
    random = np.random.default_rng(0).standard_normal(4000).astype(np.float32)
    x = np.concatenate([_INTERESTING, random, random * np.float32(1e-5), [np.float32(np.nan)]])
    there, back = np.zeros(x.size, dtype), np.zeros(x.size, np.float32)
    emulate(
        "primitives", entry, [x, there.view(np.uint16), back, x.size], grid=(200, 1, 1), threads=64
    )
    with np.errstate(over="ignore"):
        expected = x.astype(dtype)
    np.testing.assert_array_equal(there[:-1].view(np.uint16), expected[:-1].view(np.uint16))
    np.testing.assert_array_equal(back, expected.astype(np.float32))


@pytest.mark.parametrize(
    ("entry", "dtype"),
    [("convert_e4m3", ml_dtypes.float8_e4m3fn), ("convert_e5m2", ml_dtypes.float8_e5m2)],
)
def test_rounds_to_the_nearest_even_of_eight_bits(emulate, entry, dtype):
    """Every number of the type, what lies between two of them, the ties, and what is next to these."""
    own = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64)
    own = np.unique(own[np.isfinite(own)])
    beyond = [2 * own[-1] - own[-2], 1.5 * own[-1]]
    grid = np.concatenate([own, beyond, np.negative(beyond)]).astype(np.float32)
    grid.sort()
    ties = (grid[1:] + grid[:-1]) / 2
    near = [np.nextafter(each, np.float32(way)) for each in (grid, ties) for way in (-1e9, 1e9)]
    random = np.random.default_rng(0).standard_normal(4000).astype(np.float32)
    nan = np.array([np.nan, -np.nan], np.float32)
    x = np.concatenate([_INTERESTING, grid, ties, *near, random, random * np.float32(1e-4), nan])
    there, back = np.zeros(x.size, dtype), np.zeros(x.size, np.float32)
    emulate(
        "primitives", entry, [x, there.view(np.uint8), back, x.size], grid=(200, 1, 1), threads=64
    )
    with np.errstate(all="ignore"):
        expected = x.astype(dtype)
    whole = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(there), ~whole)
    np.testing.assert_array_equal(there[whole].view(np.uint8), expected[whole].view(np.uint8))
    np.testing.assert_array_equal(back, expected.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64])
def test_truncates_and_saturates_to_an_integer(emulate, dtype):
    x = np.append(_INTERESTING, np.float32(np.nan))
    there, back = np.zeros(x.size, dtype), np.zeros(x.size, np.float32)
    emulate("primitives", f"convert_{np.dtype(dtype)}", [x, there, back, x.size], threads=64)
    limits = np.iinfo(dtype)
    expected = [
        0
        if np.isnan(v)
        else min(max(int(np.trunc(np.clip(v, -1e30, 1e30))), limits.min), limits.max)
        for v in x
    ]
    np.testing.assert_array_equal(there, np.array(expected, dtype))
    np.testing.assert_array_equal(back, there.astype(np.float32))


def test_a_bool_is_whether_the_value_is_not_zero(emulate):
    x = np.array([0.0, -0.0, 1.0, np.nan, 1e-30], np.float32)
    there, back = np.zeros(5, np.bool_), np.zeros(5, np.float32)
    emulate("primitives", "convert_bool", [x, there, back, 5], threads=64)
    assert there.tolist() == [False, False, True, True, True]
    assert back.tolist() == [0, 0, 1, 1, 1]


def test_packs_and_unpacks_pairs_and_rounds_to_tf32(emulate):
    x = np.random.default_rng(1).standard_normal(126).astype(np.float32)
    half, bfloat = np.zeros(63, np.uint32), np.zeros(63, np.uint32)
    unpacked, tf32 = np.zeros(126, np.float32), np.zeros(126, np.uint32)
    emulate("primitives", "pack_pairs", [x, half, bfloat, unpacked, tf32, 63], threads=64)
    np.testing.assert_array_equal(half.view(np.float16), x.astype(np.float16))
    np.testing.assert_array_equal(
        bfloat.view(np.uint16), x.astype(ml_dtypes.bfloat16).view(np.uint16)
    )
    np.testing.assert_array_equal(unpacked, x.astype(np.float16).astype(np.float32))
    np.testing.assert_array_equal(tf32, (x.view(np.uint32) + 0x1000) & 0xFFFFE000)


@both_modes
def test_loads_and_stores_vectors(emulate, mode: Mode):
    x = np.arange(400, dtype=np.float32)
    u = np.arange(200, dtype=np.float16)
    y, v = np.zeros(400, np.float32), np.zeros(200, np.float16)
    emulate(
        "primitives", "reverse_vectors", [x, y, u, v, 100], grid=(2, 1, 1), threads=64, mode=mode
    )
    np.testing.assert_array_equal(y, x.reshape(-1, 4)[:, ::-1].reshape(-1))
    np.testing.assert_array_equal(v, u.reshape(-1, 2)[:, ::-1].reshape(-1))


@both_modes
@pytest.mark.parametrize("valid", [0, 1, 6, 15, 16])
def test_an_async_copy_fills_what_it_does_not_read_with_zeros(emulate, mode: Mode, valid: int):
    x = np.random.default_rng(2).integers(1, 255, 640).astype(np.uint8)
    y = np.zeros(640, np.uint8)
    emulate("primitives", "copy_async", [x, y, valid], shared_bytes=640, mode=mode)
    wide = np.where(np.arange(16) < valid, x[:512].reshape(32, 16), 0)
    narrow = np.where(np.arange(4) < valid, x[512:].reshape(32, 4), 0)
    np.testing.assert_array_equal(y, np.concatenate([wide.reshape(-1), narrow.reshape(-1)]))


@both_modes
def test_loads_matrices_as_the_header_draws_them(emulate, mode: Mode):
    x = np.arange(4 * 8 * 8, dtype=np.uint16)
    plain, transposed = np.zeros(128, np.uint32), np.zeros(128, np.uint32)
    emulate("primitives", "load_matrices", [x, plain, transposed], mode=mode)
    tiles = x.reshape(4, 8, 8)
    # Register j of lane 4 g + t: row g, columns 2 t and 2 t + 1 of tile j.
    np.testing.assert_array_equal(plain.view(np.uint16).reshape(4, 8, 8), tiles)
    np.testing.assert_array_equal(
        transposed.view(np.uint16).reshape(4, 8, 8), tiles.transpose(0, 2, 1)
    )


@both_modes
def test_stores_matrices_as_the_header_draws_them(emulate, mode: Mode):
    tiles = np.arange(4 * 8 * 8, dtype=np.uint16).reshape(4, 8, 8)
    # Register j of lane 4 g + t: row g, columns 2 t and 2 t + 1 of tile j.
    words, y = tiles.reshape(4, 64).view(np.uint32).copy(), np.zeros(256, np.uint32)
    emulate("primitives", "store_matrices", [words, y], shared_bytes=512, mode=mode)
    four, two = y.view(np.uint16).reshape(2, 32, 8)
    np.testing.assert_array_equal(four[np.arange(32) ^ 5], tiles.reshape(32, 8))
    np.testing.assert_array_equal(two, [*tiles[2:].reshape(16, 8), *four[16:]])


def test_a_matrix_store_that_nobody_waits_for_is_seen(emulate):
    """Lanes read rows that others store: late in one order or another."""
    words = np.arange(128, dtype=np.uint32)

    def stored(edit: Edit, seed: int) -> bytes:
        y = np.zeros(256, np.uint32)
        options = {"shared_bytes": 512, "mode": CHECKING, "seed": seed, "edit": edit}
        emulate("primitives", "store_matrices", [words, y], **options)
        return y.tobytes()

    right = {stored(whole, seed) for seed in range(4)}
    assert len(right) == 1
    assert {stored(drop("matrices_stored"), seed) for seed in range(4)} != right


@both_modes
@pytest.mark.parametrize("entry", ["mma_half", "mma_bfloat16"])
def test_multiplies_a_tile_exactly(emulate, mode: Mode, entry: str):
    random = np.random.default_rng(3)
    a = random.integers(-8, 9, (16, 16)).astype(np.float32)
    b = random.integers(-8, 9, (16, 8)).astype(np.float32)
    d = np.zeros((16, 8), np.float32)
    emulate("primitives", entry, [a, b, d], mode=mode)
    np.testing.assert_array_equal(d, a @ b)


@both_modes
def test_multiplies_tf32_tiles_of_odd_count(emulate, mode: Mode):
    random = np.random.default_rng(4)
    a = random.integers(-900, 900, (32, 8)).astype(np.float32)
    b = random.integers(-900, 900, (8, 24)).astype(np.float32)
    d = np.zeros((32, 24), np.float32)
    emulate("primitives", "mma_tf32", [a, b, d], mode=mode)
    np.testing.assert_array_equal(d, a @ b)


@both_modes
def test_shuffles_votes_and_reduces(emulate, mode: Mode):
    x = np.random.default_rng(5).integers(-50, 50, 64).astype(np.float32)
    y, votes = np.zeros((6, 64), np.float32), np.zeros(64, np.uint32)
    emulate("primitives", "shuffles", [x, y, votes], threads=64, mode=mode)
    warps, lane = x.reshape(2, 32), np.arange(32)
    expected = [
        np.repeat(warps[:, 5:6], 32, 1),
        warps[:, lane ^ 9],
        warps[:, np.where(lane < 3, lane, lane - 3)],
        warps[:, np.where(lane > 28, lane, (lane + 3) % 32)],
        np.repeat(warps.sum(1, keepdims=True), 32, 1),
        np.repeat(warps.max(1, keepdims=True), 32, 1),
    ]
    np.testing.assert_array_equal(y, np.stack(expected).reshape(6, 64))
    ballots = [(w > 0).astype(np.uint64) @ (np.uint64(1) << lane.astype(np.uint64)) for w in warps]
    np.testing.assert_array_equal(votes, np.repeat(np.array(ballots, np.uint32), 32))


@both_modes
def test_disjoint_masks_meet_apart(emulate, mode: Mode):
    x = np.arange(32, dtype=np.uint32) * 10
    y = np.zeros(32, np.uint32)
    emulate("primitives", "half_masks", [x, y], mode=mode)
    lane = np.arange(32)
    np.testing.assert_array_equal(y, x + x[np.where(lane < 16, lane ^ 1, lane ^ 2)])


@both_modes
@pytest.mark.parametrize("threads", [20, 100, 256])
def test_reduces_blocks_of_any_size(emulate, mode: Mode, threads: int):
    x = np.random.default_rng(6).integers(-50, 50, (3, threads)).astype(np.float32)
    sums, maxima = np.zeros((3, threads), np.float32), np.zeros((3, threads), np.float32)
    entry = f"reduce_blocks_{threads}"
    emulate("primitives", entry, [x, sums, maxima], grid=(3, 1, 1), threads=threads, mode=mode)
    np.testing.assert_array_equal(sums, np.repeat(x.sum(1, keepdims=True), threads, 1))
    np.testing.assert_array_equal(maxima, np.repeat(x.max(1, keepdims=True), threads, 1))


@both_modes
def test_warps_may_leave_early(emulate, mode: Mode):
    x = np.random.default_rng(7).integers(0, 9, 1000).astype(np.uint32)
    y = np.zeros(1000, np.uint32)
    emulate("primitives", "scan_warps", [x, y, 1000], grid=(8, 1, 1), threads=160, mode=mode)
    padded = np.zeros(1024, np.uint32)
    padded[:1000] = x
    np.testing.assert_array_equal(y, padded.reshape(32, 32).cumsum(1).reshape(-1)[:1000])


def test_atomics_count_over_all_blocks(emulate):
    total, result = np.zeros(1, np.int32), np.zeros(1, np.float32)
    emulate("primitives", "count_atomically", [total, result], grid=(50, 2, 1), threads=128)
    assert total[0] == 50 * 2 * 128
    assert result[0] == total[0] / 2


@both_modes
def test_static_shared_memory_belongs_to_the_block(emulate, mode: Mode):
    x = np.random.default_rng(8).standard_normal((9, 96, 128)).astype(np.float32)
    y = np.zeros((9, 128, 96), np.float32)
    emulate("primitives", "transpose_static", [x, y], grid=(9, 1, 1), threads=256, mode=mode)
    np.testing.assert_array_equal(y, x.transpose(0, 2, 1))


def test_functions_have_the_values_of_their_names(emulate):
    x = np.concatenate([np.linspace(-6, 6, 99), [np.nan]]).astype(np.float32)
    y = np.zeros((16, 100), np.float32)
    emulate("primitives", "functions", [x, y, 100], grid=(2, 1, 1), threads=64)
    v = x.astype(np.float64)
    with np.errstate(all="ignore"):
        root = np.sqrt(abs(v))
        expected = [np.exp(v), np.log(abs(v)), np.tanh(v), [erf(e) for e in v], root, 1 / root]
        expected += [abs(v) ** 1.5, np.floor(v), np.ceil(v), np.rint(v), np.sin(v), np.cos(v)]
        expected += [np.fmin(v, 0.5), np.fmax(v, 0.5), v * v + 1, np.isnan(v)]
    # A few units in the last place: what both libraries and a contracted rounding may differ by.
    np.testing.assert_allclose(y, expected, rtol=4 * np.finfo(np.float32).eps, atol=2e-7)


@both_modes
def test_threads_and_blocks_know_their_place_in_three_dimensions(emulate, mode: Mode):
    y = np.zeros((24, 24), np.uint32)
    emulate("primitives", "positions", [y], grid=(2, 3, 4), block=(4, 3, 2), mode=mode)
    np.testing.assert_array_equal(y, np.arange(24)[:, None] * 1000 + np.arange(24)[None])
