"""Bank conflicts: known patterns, and a brute-force count lane by lane."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wpk.performance.bank_conflicts import passes, shared_cost
from wpk.performance.work import SharedAccess

LANES = range(32)


def _one(addresses: list[int], size: int) -> int:
    return int(passes(np.asarray([addresses]), size)[0])


@pytest.mark.parametrize(
    ("addresses", "size", "expected"),
    [
        ([4 * i for i in LANES], 4, 1),  # neighbours
        ([0 for _ in LANES], 4, 1),  # broadcast
        ([8 * i for i in LANES], 4, 2),  # every other word
        ([128 * i for i in LANES], 4, 32),  # one bank
        ([132 * i for i in LANES], 4, 1),  # rows padded by one word
        ([2 * i for i in LANES], 2, 1),  # two lanes a word
        (list(LANES), 1, 1),
        ([8 * i for i in LANES], 8, 2),  # half-warps
        ([16 * i for i in LANES], 16, 4),  # quarter-warps
        ([128 * i for i in LANES], 16, 32),  # rows of 128 bytes unswizzled: 4 phases of 8 passes
        ([128 * i + 16 * (i % 8) for i in LANES], 16, 4),  # swizzled by the row
        ([144 * i for i in LANES], 16, 4),  # rows padded by 16 bytes
        ([-1 for _ in LANES], 4, 0),
        ([128 * i if i < 3 else -1 for i in LANES], 4, 3),
    ],
)
def test_known_patterns(addresses: list[int], size: int, expected: int) -> None:
    assert _one(addresses, size) == expected


def _brute_force(addresses: list[int], size: int) -> int:
    count = max(1, size // 4)
    width = 32 // count
    total = 0
    for phase in range(count):
        banks: dict[int, set[int]] = {}
        for address in addresses[phase * width : (phase + 1) * width]:
            if address < 0:
                continue
            for word in range(address // 4, (address + size - 1) // 4 + 1):
                banks.setdefault(word % 32, set()).add(word)
        total += max((len(words) for words in banks.values()), default=0)
    return total


@settings(max_examples=150, deadline=None)
@given(
    size=st.sampled_from([1, 2, 4, 8, 16]),
    slots=st.lists(
        st.lists(st.integers(-1, 200), min_size=32, max_size=32), min_size=1, max_size=4
    ),
)
def test_agrees_with_brute_force(size: int, slots: list[list[int]]) -> None:
    warps = [[slot * size if slot >= 0 else -1 for slot in warp] for warp in slots]
    assert passes(np.asarray(warps), size).tolist() == [_brute_force(w, size) for w in warps]


def test_the_coefficient_weighs_accesses_by_their_count() -> None:
    free = SharedAccess(tuple(4 * i for i in LANES), 4, count=3)
    twofold = SharedAccess(tuple(8 * i for i in LANES), 4, count=1)
    assert shared_cost((free,)).coefficient == 1.0
    assert shared_cost((free, twofold)).coefficient == pytest.approx((3 * 1 + 1 * 2) / 4)
    assert shared_cost((free, twofold)).passes == pytest.approx((3 * 1 + 1 * 2) / 4)


def test_wide_accesses_take_passes_but_do_not_conflict() -> None:
    accesses = tuple(SharedAccess(tuple(size * i for i in LANES), size, 1) for size in (4, 8, 16))
    assert shared_cost(accesses).coefficient == 1.0
    assert shared_cost(accesses).passes == pytest.approx((1 + 2 + 4) / 3)


def test_phases_without_active_lanes_are_no_excuse() -> None:
    # Only the first quarter-warp is active, all its rows in the same four banks: 8 passes for 1.
    access = SharedAccess(tuple(128 * i if i < 8 else -1 for i in LANES), 16, 1)
    assert shared_cost((access,)).coefficient == 8.0


def test_nothing_loaded_means_no_conflicts() -> None:
    assert shared_cost(()) == shared_cost((SharedAccess((-1,) * 32, 4, 1),))
    assert shared_cost(()).coefficient == 1.0
