"""A kernel that breaks a rule is reported: what, and by which block and thread."""

import numpy as np
import pytest
from support.launches.on_arrays import guarded

from wpk.emulator import CHECKING, FAST, EmulatorError, Mode

both_modes = pytest.mark.parametrize("mode", [FAST, CHECKING], ids=["fast", "checking"])


def _values(count: int, dtype: type[np.generic] = np.float32) -> np.ndarray:
    return guarded(np.zeros(count, dtype))


@both_modes
@pytest.mark.parametrize(
    ("entry", "threads", "message"),
    [
        ("divergent_barrier", 64, "deadlock: 40 of 64 threads wait at __syncthreads"),
        ("different_operations", 64, "lane 0 in shuffle .* lane 7 in ballot"),
        ("outside_mask", 32, r"mask 0000ffff lacks it .*thread \((1[6-9]|2\d|3[01]), 0, 0\)"),
        (
            "null_pointer",
            32,
            "illegal address \\(nil\\).*block \\(0, 0, 0\\), thread \\(0, 0, 0\\)",
        ),
        ("misaligned_rows", 32, "row address of lane 1 is not 16-byte aligned"),
        (
            "misaligned_rows_stored",
            32,
            "storeMatrices: the row address of lane 1 is not 16-byte aligned",
        ),
        ("partial_warp_rows_stored", 32, "storeMatrices: only lanes ffff0000 take part"),
        ("partial_warp_tile", 32, "mmaTile: only lanes ffff0000 take part"),
        (
            "barrier_nobody_reaches",
            32,
            (
                r"32 of 32 threads wait at a barrier in shared memory \(at byte 0 of block 0 of the cluster, "
                r"for parity 0: 1 arrivals and 0 bytes are missing\)"
            ),
        ),
        ("overflow_stack", 1, "local variables need more than"),
    ],
)
def test_reports_rules_broken_in_both_modes(emulate, mode, entry, threads, message):
    with pytest.raises(EmulatorError, match=message):
        emulate("misbehaving", entry, [_values(64)], threads=threads, shared_bytes=1024, mode=mode)


@both_modes
def test_reports_a_division_by_zero(emulate, mode: Mode):
    x, y = np.ones(32, np.int32), np.zeros(32, np.int32)
    x[9] = 0
    with pytest.raises(EmulatorError, match="division by zero"):
        emulate("misbehaving", "divide_by_zero", [x, y], mode=mode)


@both_modes
@pytest.mark.parametrize("offset", [1, 4096, 1 << 20, -4096])
def test_reports_writes_outside_a_guarded_buffer(emulate, mode: Mode, offset: int):
    with pytest.raises(EmulatorError, match="illegal address"):
        emulate("misbehaving", "write_behind", [_values(32), offset], mode=mode)


@both_modes
def test_reports_reads_outside_a_guarded_buffer(emulate, mode: Mode):
    with pytest.raises(EmulatorError, match=r"illegal address .*thread \(31, 0, 0\)"):
        emulate("misbehaving", "read_behind", [_values(32), _values(32), 1], mode=mode)


@both_modes
def test_reports_writes_far_behind_shared_memory(emulate, mode: Mode):
    arguments = [_values(32), 256]
    with pytest.raises(EmulatorError, match="behind the 128 bytes of dynamic shared memory"):
        emulate("misbehaving", "write_behind_shared", arguments, shared_bytes=128, mode=mode)


def test_reports_writes_just_behind_shared_memory_when_checking(emulate):
    arguments = [_values(32), 2]
    with pytest.raises(EmulatorError, match="0 bytes behind its 128 bytes"):
        emulate("misbehaving", "write_behind_shared", arguments, shared_bytes=128, mode=CHECKING)


def test_shared_memory_that_nobody_wrote_reads_as_nan_when_checking(emulate):
    y = _values(64)
    for _ in range(2):  # the second launch finds what the first left behind
        y[...] = 0
        emulate("misbehaving", "read_unwritten_shared", [y], shared_bytes=128, mode=CHECKING)
        assert np.isnan(y).all()


def test_a_copy_that_nobody_waits_for_reads_as_nan_when_checking(emulate):
    x, y = _values(32), _values(32)
    emulate("misbehaving", "unwaited_copy", [x, y], shared_bytes=128, mode=CHECKING)
    assert np.isnan(y).all()


def test_random_order_shows_a_missing_barrier(emulate):
    wrong = 0
    for seed in range(5):
        y = _values(64)
        emulate("misbehaving", "missing_barrier", [y], threads=64, mode=CHECKING, seed=seed)
        wrong += not np.array_equal(y, np.arange(63, -1, -1))
    assert wrong == 5


def test_random_order_is_decided_by_the_seed(emulate):
    def execute(seed: int) -> bytes:
        y = _values(64)
        emulate("misbehaving", "missing_barrier", [y], threads=64, mode=CHECKING, seed=seed)
        return y.tobytes()

    assert execute(3) == execute(3)
    assert len({execute(seed) for seed in range(6)}) > 1


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("misaligned_load", "load of 16 bytes at .*not aligned"),
        ("misaligned_copy", "copyAsync: target is not aligned to 16 bytes"),
    ],
)
def test_reports_misaligned_accesses_when_checking(emulate, entry: str, message: str):
    arguments = [_values(64), _values(64)][: 1 + (entry == "misaligned_load")]
    with pytest.raises(EmulatorError, match=message):
        emulate("misbehaving", entry, arguments, shared_bytes=256, mode=CHECKING)


@pytest.mark.parametrize(
    ("stride", "passes_a_load"), [(32, 32), (33, 1), (34, 2), (36, 4), (40, 8)]
)
def test_counts_bank_conflicts_of_loads(emulate, stride: int, passes_a_load: int):
    done = emulate(
        "misbehaving",
        "read_columns",
        [_values(32), stride],
        shared_bytes=stride * 32 * 4,
        mode=Mode(count_banks=True),
    )
    assert done.phases["load"] == done.phases["store"] == 32
    assert done.conflicts["store"] == 0
    assert done.conflicts["load"] == 32 * (passes_a_load - 1)


def test_an_error_leaves_the_emulator_usable(emulate):
    with pytest.raises(EmulatorError):
        emulate("misbehaving", "divergent_barrier", [_values(64)], threads=64)
    y = np.zeros((24, 24), np.uint32)
    emulate("primitives", "positions", [y], grid=(2, 3, 4), block=(4, 3, 2))
    assert y[23, 23] == 23023


def test_refuses_blocks_that_no_gpu_has(emulate):
    with pytest.raises(EmulatorError, match="blocks of 1025 threads"):
        emulate("misbehaving", "null_pointer", [_values(1)], threads=1025)


def test_refuses_numbers_that_do_not_fit(emulate):
    with pytest.raises(EmulatorError, match="no int32"):
        emulate("misbehaving", "write_behind", [_values(32), 2**31])
