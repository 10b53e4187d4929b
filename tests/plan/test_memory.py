"""Where pieces of memory lie, laid out by hand."""

from collections.abc import Collection
from itertools import pairwise

import pytest

from wpk.dtypes import DType
from wpk.expression import Operand, apply
from wpk.extent import Extent
from wpk.lowering.program import Buffer, Operator, Value
from wpk.plan.memory import Layout, MemoryPlan, aligned, lay_out, lifetimes, plan_memory
from wpk.plan.order import Order
from wpk.problems import Elementwise, Tensor


@pytest.mark.parametrize(
    ("size", "whole"), [(0, 0), (1, 256), (256, 256), (257, 512), (1000, 1024)]
)
def test_sizes_are_multiples_of_256(size: int, whole: int) -> None:
    assert aligned(size) == whole


def laid_out(sizes: dict[str, int], apart: Collection[str]) -> Layout[str]:
    """Pieces of which the pairs ``apart``, e.g. ``ab``, may not share."""
    return lay_out(sizes, lambda one, other: one + other not in apart and other + one not in apart)


def test_nothing_takes_no_memory() -> None:
    assert laid_out({}, ()) == Layout({}, 0)


@pytest.mark.parametrize(
    ("sizes", "apart", "offsets", "size"),
    [
        ({"a": 256, "b": 512}, [], {"a": 0, "b": 0}, 512),
        ({"a": 256, "b": 512}, ["ab"], {"b": 0, "a": 512}, 768),
        ({"a": 256, "b": 256}, ["ab"], {"a": 0, "b": 256}, 512),
        # c fits exactly in front of b, which must lie behind a
        ({"a": 768, "b": 512, "c": 768 - 256}, ["ab", "bc"], {"a": 0, "b": 768, "c": 0}, 1280),
        # e fills the gap between c and b, f does not fit and goes to the end
        (
            {"a": 1024, "b": 512, "c": 256, "e": 256, "f": 256},
            ["ab", "bc", "ce", "be", "cf", "ef", "bf", "af"],
            {"a": 0, "b": 1024, "c": 0, "e": 256, "f": 1536},
            1792,
        ),
    ],
)
def test_each_takes_the_lowest_place_where_it_meets_no_other(
    sizes: dict[str, int], apart: list[str], offsets: dict[str, int], size: int
) -> None:
    assert laid_out(sizes, apart) == Layout(offsets, size)


def chain(*names: str) -> tuple[dict[str, Value], list[Operator]]:
    """A value after the other, each of its own buffer."""
    batch, tensor = Extent(2, "n"), Tensor(DType.FP32, (64, 1))
    problem = Elementwise(batch, (2, 64), apply("Neg", Operand(0)), (tensor,), tensor)
    values = {
        name: Value(name, DType.FP32, batch, (2, 64), (64, 1), 0, f"of_{name}", 0, (2, 64))
        for name in names
    }
    steps = [
        Operator(f"step_{other}", (), problem, (one,), (other,), f"call_{other}")
        for one, other in pairwise(names)
    ]
    return values, steps


def test_a_buffer_lives_from_its_first_step_to_its_last() -> None:
    values, steps = chain("x", "a", "b", "y")
    assert lifetimes(values, steps, ("x", "y")) == {
        "of_x": (-1, 3),
        "of_y": (-1, 3),
        "of_a": (0, 1),
        "of_b": (1, 2),
    }


def planned(*names: str, batch: int = 2) -> MemoryPlan:
    values, steps = chain(*names)
    buffers = {v.buffer: Buffer(v.buffer, v.span()) for v in values.values()}
    pinned = [names[0], names[-1]]
    return plan_memory(buffers, values, Order(values, steps), pinned, {"n": batch})


def test_what_stays_shares_with_nothing_and_every_second_value_of_a_chain_shares() -> None:
    found = planned("x", "a", "b", "c", "d", "y")
    assert found.sizes == dict.fromkeys(["of_x", "of_a", "of_b", "of_c", "of_d", "of_y"], 512)
    kept = {found.offsets[name] for name in ("of_x", "of_y")}
    one, other = (
        {found.offsets[name] for name in pair} for pair in (("of_a", "of_c"), ("of_b", "of_d"))
    )
    assert (len(kept), len(one), len(other), len(kept | one | other)) == (2, 1, 1, 4)
    assert (found.bytes, found.peak_bytes) == (4 * 512, 4 * 512)


def test_sizes_follow_the_batch_and_the_peak_is_what_one_step_needs() -> None:
    assert planned("x", "a", "y", batch=5).peak_bytes == 3 * 1280
    assert planned("x", "y").peak_bytes == planned("x", "y").bytes == 2 * 512
    values, _ = chain("x")
    buffers = {"of_x": Buffer("of_x", values["x"].span())}
    alone = plan_memory(buffers, values, Order(values, []), ["x"], {"n": 2})
    assert (alone.offsets, alone.bytes, alone.peak_bytes) == ({"of_x": 0}, 512, 512)
