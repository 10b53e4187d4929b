"""Which operators must follow which, and who may share memory where they need not."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from support.networks import handwritten
from support.networks.branching import write_branching

from wpk.dims import evaluate
from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.lowering.model import lower_model
from wpk.lowering.program import Buffer, Program, Value
from wpk.plan.memory import MemoryPlan, plan_memory
from wpk.plan.order import WINDOW, Order, may_overlap


@pytest.fixture(scope="module", params=[Precision.FP32, Precision.FP16], ids=lambda p: p.value)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    path = write_branching(tmp_path_factory.mktemp("model") / "branching.onnx")
    return lower_model(path, {}, request.param).program


def layout(program: Program, order: Order, batch: int) -> MemoryPlan:
    pinned = (*program.inputs, *program.outputs)
    return plan_memory(program.buffers, program.values, order, pinned, {"batch": batch})


def touched(value: Value, start: int, batch: int) -> set[int]:
    """Every byte of a value's elements and of their padding."""
    free = value.leading.free or ""
    shape = [evaluate(value.leading.expression, {free: batch}), *value.shape[1:]]
    if value.strides[-1] == 1:
        shape[-1] += value.padding
    return {start + value.offset + at for at in places(shape, value.strides, value.dtype.bytes)}


def places(shape: Sequence[int], strides: Sequence[int], item: int) -> set[int]:
    """Every byte of a strided array."""
    firsts = [0]
    for extent, stride in zip(shape, strides, strict=True):
        firsts = [at + n * stride for at, n in product(firsts, range(extent if stride else 1))]
    return {first * item + byte for first in firsts for byte in range(item)}


def test_branches_follow_what_they_read_and_a_concatenation_follows_all(program: Program) -> None:
    order = Order(program.values, program.operators)
    count = len(program.operators)
    assert order.longest_chain([1] * count) < count
    edges = {(other, step) for step, others in enumerate(order.predecessors) for other in others}
    readers = {other for other, _ in edges}
    joins = [step for step, others in enumerate(order.predecessors) if len(others) > 1]
    assert len(joins) >= 2  # what reads the concatenation, and the residual
    assert max(len(order.predecessors[step]) for step in joins) == 3
    assert set(range(count)) - readers == {count - 1}  # nothing but the last is read by nobody
    assert all(other < step for other, step in edges)


def test_the_longer_of_two_branches_adds_the_other(program: Program) -> None:
    order = Order(program.values, program.operators)
    last = program.operators[-1]
    assert last.name.startswith("conv_add_relu")
    chain, shortcut = order.predecessors[-1]
    assert not order.ordered(chain, shortcut)


def test_the_longest_chain_goes_through_the_longer_branches(program: Program) -> None:
    order = Order(program.values, program.operators)
    lengths = [
        float(10 * (operator.name.startswith("maxpool")) + 1) for operator in program.operators
    ]
    plain = order.longest_chain([1.0] * len(lengths))
    assert order.longest_chain(lengths) > plain + 5  # the pool's branch is the longest now
    assert order.longest_chain([0.0] * len(lengths)) == 0


@pytest.mark.parametrize("batch", [1, 3])
def test_steps_that_may_run_at_once_touch_no_byte_that_the_other_writes(
    program: Program, batch: int
) -> None:
    order = Order(program.values, program.operators)
    memory = layout(program, order, batch)

    def sets(names: tuple[str, ...]) -> set[int]:
        found = [program.values[name] for name in names if name in program.values]
        return set().union(*(touched(v, memory.offsets[v.buffer], batch) for v in found))

    reads = [sets(operator.inputs) for operator in program.operators]
    writes = [sets(operator.outputs) for operator in program.operators]
    pairs = list(combinations(range(len(program.operators)), 2))
    free = [pair for pair in pairs if not order.ordered(*pair)]
    assert free
    for one, other in free:
        assert not writes[one] & (reads[other] | writes[other])
        assert not reads[one] & writes[other]
    meets = [bool(writes[i] & reads[j]) for i, j in pairs if order.ordered(i, j)]
    assert any(meets)


@pytest.mark.parametrize("name", [*handwritten.TEXTS, *handwritten.BLOCKS])
def test_operators_touch_nothing_but_their_values(name: str, tmp_path: Path) -> None:
    """So that values say who must follow whom."""
    program = lower_model(handwritten.write(name, tmp_path), {}, Precision.FP16).program
    seen = 0
    for operator in program.operators:
        touches = (*operator.problem.reads(), *operator.problem.writes())
        pairs = zip((*operator.inputs, *operator.outputs), touches, strict=True)
        for own, access in pairs:
            if own not in program.values or access is None:
                continue
            for batch in (1, 2):
                dims = dict.fromkeys(program.free, batch)
                shape = [evaluate(extent, dims) for extent in access.extents]
                place = program.values[own].offset
                reached = places(shape, access.tensor.strides, access.tensor.dtype.bytes)
                inside = touched(program.values[own], -place, batch)
                assert reached <= inside, (operator.name, own)
                seen += 1
    assert seen


def test_buffers_of_independent_branches_lie_apart(program: Program) -> None:
    """Where every step followed the one in front, some of them would share memory."""
    order = Order(program.values, program.operators)
    memory = layout(program, order, 1)
    lanes: dict[str, set[int]] = {}
    for step, operator in enumerate(program.operators):
        for name in (*operator.inputs, *operator.outputs):
            if name in program.values:
                lanes.setdefault(program.values[name].buffer, set()).add(step)
    pinned = {program.values[name].buffer for name in (*program.inputs, *program.outputs)}
    apart = 0
    for one, other in combinations(sorted(set(lanes) - pinned), 2):
        if all(order.ordered(a, b) or a == b for a in lanes[one] for b in lanes[other]):
            continue
        begin, end = memory.offsets[one], memory.offsets[one] + memory.sizes[one]
        assert end <= memory.offsets[other] or memory.offsets[other] + memory.sizes[other] <= begin
        apart += 1
    assert apart


def test_parts_that_are_listed_one_after_the_other_run_so_but_where_they_meet(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight chains of 60 steps: the memory of all at once would be eight times that of one."""
    chains, steps, size = 8, 60, 1 << 20
    values, buffers, operators = {}, {}, []
    for chain, step in product(range(chains), range(steps + 1)):
        name = f"{chain} {step}"
        values[name] = replace(value((size // 2,), (1,), 0, buffer=name), name=name)
        buffers[name] = Buffer(name, size)
        if step:
            reads = (f"{chain} {step - 1}",)
            operators.append(replace(program.operators[0], inputs=reads, outputs=(name,)))

    def laid_out() -> tuple[Order, int]:
        order = Order(values, operators)
        return order, plan_memory(buffers, values, order, (), {}).bytes // size

    order, arena = laid_out()
    pairs = list(combinations(range(len(operators)), 2))
    assert all(order.ordered(*pair) for pair in pairs if pair[1] - pair[0] >= WINDOW)
    assert any(not order.ordered(*pair) for pair in pairs)
    assert arena <= 3 * 2  # of each chain two buffers are alive; two meet
    assert max(map(len, order.predecessors)) <= 3
    monkeypatch.setattr("wpk.plan.order.WINDOW", len(operators))
    assert laid_out()[1] >= 2 * chains


def value(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    *,
    padding: int = 0,
    free: bool = False,
    buffer: str = "b",
) -> Value:
    leading = Extent(shape[0], "batch" if free else None)
    return Value("v", DType.FP16, leading, shape, strides, padding, buffer, offset, shape)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (value((2, 8), (8, 1), 0), value((2, 8), (8, 1), 0, buffer="c"), False),
        (value((2, 8), (8, 1), 0), value((2, 8), (8, 1), 32), False),  # behind each other
        (value((2, 8), (8, 1), 0), value((2, 8), (8, 1), 30), True),
        (value((1, 8), (8, 1), 0, free=True), value((2, 8), (8, 1), 32), True),  # it may grow
        (value((3, 4), (8, 1), 0), value((3, 4), (8, 1), 8), False),  # columns
        (value((3, 4), (8, 1), 0), value((3, 4), (8, 1), 6), True),
        (value((3, 4), (8, 1), 0, padding=1), value((3, 4), (8, 1), 8), True),
        (value((1, 4), (8, 1), 0, free=True), value((1, 4), (8, 1), 8, free=True), False),
        (value((3, 4), (8, 1), 0), value((3, 4), (16, 1), 8), True),  # rows of other lengths
        (value((3, 5), (8, 1), 8), value((3, 2), (8, 1), 0), True),  # reaches into the next row
        (value((3, 4, 2), (16, 1, 8), 0), value((3, 2, 4), (16, 8, 1), 8), False),  # turned
        (
            value((3, 4), (12, 3), 0),
            value((3, 4), (12, 3), 2),
            False,
        ),  # between each other's elements
    ],
)
def test_overlaps_that_are_known(one: Value, other: Value, expected: bool) -> None:
    assert may_overlap(one, other) is expected
    assert may_overlap(other, one) is expected


def test_what_is_said_not_to_overlap_does_not_at_any_size() -> None:
    rng = np.random.default_rng(3)
    proven = 0
    for _ in range(4000):
        pair = []
        pitch = int(rng.choice([4, 6, 8]))
        for _ in range(2):
            columns = int(rng.integers(1, 5))
            shape, strides = [2, 3, columns], [3 * pitch, pitch, 1]
            if rng.random() < 0.3:
                order = [0, *rng.permutation([1, 2])]
                shape, strides = [shape[n] for n in order], [strides[n] for n in order]
            padding = int(rng.integers(0, 2)) if strides[-1] == 1 else 0
            offset = 2 * int(rng.integers(0, 12 * pitch))
            free = bool(rng.random() < 0.5)
            pair.append(value(tuple(shape), tuple(strides), offset, padding=padding, free=free))
        if may_overlap(*pair):
            continue
        proven += 1
        for batch in (1, 2, 5):
            one, other = (touched(each, 0, batch if each.leading.free else 2) for each in pair)
            assert not one & other, pair
    assert proven > 400
