"""Plans that were changed by somebody who knows their form: what each field may not say."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from support.networks import one_operator
from support.networks.drawn_weights import parse_model

from wpk.codec import encode
from wpk.dtypes import DType
from wpk.errors import PlanError
from wpk.extent import MAX_SIZE, Extent
from wpk.lowering.program import Buffer, Operator, Value
from wpk.pipeline import optimize
from wpk.plan.checks.whole_plan import check_plan, check_sizes
from wpk.plan.checks.work import check_work
from wpk.plan.fields import decode
from wpk.plan.plan import Plan, PlanBundle, Step
from wpk.plan.plan_file import read_plan
from wpk.problems import Elementwise, Epilogue, Pooling, Tensor
from wpk.problems.pooling import PoolKind

Fields = dict[str, Any]
Change = Callable[[Fields], None]


def put(*keys: Any, to: Any) -> Change:
    def change(plan: Fields) -> None:
        at: Any = plan
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = to

    return change


def check(plan: Plan, *changes: Change) -> None:
    fields = encode(plan, Plan)
    for change in changes:
        change(fields)
    check_plan(decode(fields, Plan, "plan"))


STEP = ("steps", 0)
OPERATOR = (*STEP, "operator")
PROBLEM = (*OPERATOR, "problem")
X, W, Y = (*PROBLEM, "inputs", 0), (*PROBLEM, "inputs", 1), (*PROBLEM, "y")
DEEP = ["sum", 1, 1]
for _ in range(8):
    DEEP = ["prod", DEEP, DEEP]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        # A positive and a negative stride cancel in the span.
        ([put(*X, "strides", to=[-8, 1])], r"operand 0.strides: -8 is not within 0"),
        ([put(*Y, "strides", to=[-(2**26), 2**26])], r"problem.y.strides: -67108864"),
        ([put(*X, "strides", to=[8])], r"operand 0.strides: \(8,\) for 2 axes"),
        ([put(*X, "strides", to=[8, 1, 1])], r"operand 0.strides: \(8, 1, 1\) for 2 axes"),
        ([put(*Y, "padding", to=2**26)], r"problem.y.padding: 67108864"),
        ([put(*Y, "padding", to=4)], r"outputs\[0\]: the problem's strides .* padding 4 leave 'y'"),
        ([put(*X, "padding", to=1)], r"inputs\[0\]: the problem's strides .* padding 1 leave 'x'"),
        ([put(*X, "alignment", to=64)], r"operand 0.alignment: 64 bytes"),
        ([put(*X, "alignment", to=2)], r"operand 0.alignment: 2 bytes for fp32"),
        ([put(*X, "alignment", to=0)], r"operand 0.alignment"),
        ([put(*X, "strides", to=[7, 1])], r"operand 0.alignment: 16 bytes, with a stride of 7"),
        ([put(*X, "strides", to=[4, 1])], r"inputs\[0\]: the problem's strides \(4, 1\)"),
        ([put(*X, "dtype", to="fp16")], r"inputs\[0\]: is fp32, the problem has fp16"),
        ([put(*Y, "strides", to=[8, 0])], r"outputs\[0\]: the problem"),
        ([put(*PROBLEM, "shape", to=[2])], r"strides: \(8, 1\) for 1 axes"),
        ([put(*PROBLEM, "shape", to=[])], r"shape: \(\) does not begin"),
        ([put(*PROBLEM, "shape", to=[2, 0])], r"shape: 0 is not within 1"),
        ([put(*PROBLEM, "shape", to=[3, 8])], r"shape: \(3, 8\) does not begin with"),
        ([put(*PROBLEM, "shape", to=[2, 2**31])], r"shape: 2147483648 is not within"),
        ([put(*PROBLEM, "leading", "value", to=3)], r"leading: 3 is not 1 x 2 \(n\)"),
        ([put(*PROBLEM, "leading", "factor", to=0)], r"leading.factor: 0"),
        ([put(*PROBLEM, "leading", "free", to="m")], r"leading.free: no dimension is called 'm'"),
        # Expressions read operands by number.
        ([put(*PROBLEM, "expression", "arguments", 0, "index", to=2)], "reads operand 2"),
        ([put(*PROBLEM, "expression", "arguments", 0, "index", to=-1)], "reads operand -1"),
        ([put(*PROBLEM, "expression", "arguments", 0, "index", to=1000)], "reads operand 1000"),
        ([put(*PROBLEM, "expression", "arguments", 0, to={"type": "Acc"})], "does not follow"),
        ([put(*W, "dtype", to="fp16")], r"inputs\[1\]: is fp32, the problem has fp16"),
        (
            [put(*W, "strides", to=[8, 1])],
            r"inputs\[1\]: the problem reaches 64 bytes far, 32 are there",
        ),
        # Limits of free dimensions.
        ([put("limits", to={"m": [1, 4]})], r"limits.m: no free dimension is called so"),
        ([put("limits", to={"n": [1, 1]})], r"limits.n: 1 is not within 2"),
        ([put("limits", to={"n": [3, 4]})], r"limits.n: 3 is not within 1"),
        ([put("limits", to={"n": [0, 4]})], r"limits.n: 0 is not within 1"),
        # Values and ports.
        ([put("arch", to="sm90")], r"plan.arch: 'sm90' is no architecture"),
        ([put("arch", to="sm_90a\n")], r"plan.arch: 'sm_90a\\n' is no architecture"),
        ([put("values", "y", "buffer", to="none")], r"y.buffer: no buffer is called 'none'"),
        ([put("values", "y", "padding", to=2**20)], r"values.y: ends at byte 4194368 of buffer"),
        ([put("values", "y", "padding", to=2**20 + 1)], r"y.padding: 1048577 is not within 0"),
        ([put("inputs", 0, "shape", to=["n", 9])], r"inputs\[0\].shape: \(2, 9\), its value has"),
        ([put("inputs", 0, "dtype", to="int8")], r"inputs\[0\].dtype: int8, its value has fp32"),
        ([put("inputs", 0, "name", to="z")], r"inputs\[0\].name: no value is called 'z'"),
        (
            [put("free", to={"n": 2, "m": 8}), put("inputs", 0, "shape", to=["n", "m"])],
            r"inputs\[0\].shape: \(2, 8\), its value has \('n', 8\)",
        ),
        (
            [
                put("values", "x", "offset", to=4),
                put("buffers", "bx", "bytes", to=["sum", 4, ["prod", 32, "n"]]),
            ],
            r"inputs\[0\]: the problem counts on 16 bytes, 'x' begins at 4",
        ),
        ([put("values", "y", "strides", to=[4, 1])], r"y.strides: \(4, 1\) let elements"),
        ([put("values", "y", "leading", "value", to=4)], r"y.leading: 4 is not 1 x 2"),
        ([put("weights", "w", "digest", to="0" * 63)], r"weights.w.digest: '0+' is no SHA-256"),
        ([put("outputs", to=[])], r"plan.outputs: is empty"),
        ([put("free", to={"n": 2, "m": 3})], r"plan.free.m: no input decides it"),
        ([put("inputs", to=[])], r"plan.free.n: no input decides it"),
        # Steps.
        ([put(*STEP, "launches", to=[])], r"steps\[0\].launches: is empty"),
        ([put(*STEP, "inputs", 0, to="z")], r"inputs\[0\]: no value or weight is called 'z'"),
        ([put(*STEP, "inputs", to=["x"])], r"steps\[0\].inputs: 1 names, the problem has 2"),
        ([put(*OPERATOR, "outputs", to=["z"])], r"operator.outputs: \('z',\) is not one value"),
        ([put(*OPERATOR, "outputs", to=["y", "x"])], r"operator.outputs: \('y', 'x'\) is not one"),
        ([put(*OPERATOR, "outputs", to=[])], r"operator.outputs: \(\) is not one value"),
        ([put("steps", to=[])], r"outputs\[0\]: 'y' is used before all of it was written"),
        ([put(*STEP, "inputs", to=["w", "x"])], r"inputs\[0\]: holds constant 'w', the operator"),
        ([put(*OPERATOR, "inputs", to=["x"])], r"operator.inputs: 1 names"),
        ([put(*OPERATOR, "inputs", to=["y", "w"])], r"inputs\[0\]: 'x', the operator has 'y'"),
        (
            [put(*OPERATOR, "problem", "inputs", 0, "constant", to=True)],
            r"inputs\[0\]: 'x' is a value, the problem reads a constant",
        ),
        (
            [put(*STEP, "inputs", 0, to="y"), put(*OPERATOR, "inputs", 0, to="y")],
            r"inputs\[0\]: 'y' is used before all of it was written",
        ),
        ([put(*OPERATOR, "outputs", to=["x"])], r"outputs\[0\]: 'x' would overwrite"),
        ([put("values", "y", "buffer", to="bx")], r"outputs\[0\]: 'y' would overwrite"),
        ([put("weights", "w", "packing", to="nk_pad")], r"inputs\[1\]: is packed as 'nk_pad'"),
        ([put("weights", "w", "constant", to="v")], r"inputs\[1\]: holds constant 'v'"),
        # Numbers that take for ever to find.
        (
            [put("buffers", "by", "bytes", to=DEEP)],
            r"buffers.by.bytes: .* more than 256 operations",
        ),
        ([put("buffers", "by", "bytes", to=["sum", 2**63, 0])], "an integer of 64 bits"),
        (
            [put("buffers", "by", "bytes", to=["prod", 2**60, ["prod", 2**60, 2**60]])],
            "64 bits do not hold",
        ),
        ([put("buffers", "by", "bytes", to=["ceil_div", "n", 0])], "divides by zero"),
    ],
)
def test_a_field_that_lies_is_named(
    bundle: PlanBundle, changes: list[Change], message: str
) -> None:
    check(bundle.plan)
    with pytest.raises(PlanError, match=message):
        check(bundle.plan, *changes)


def test_no_weight_has_the_name_of_a_value(bundle: PlanBundle) -> None:
    weight = replace(bundle.plan.weights["w"], name="y")
    plan = replace(bundle.plan, weights={**bundle.plan.weights, "y": weight})
    with pytest.raises(PlanError, match=r"plan.weights.y: a value has the same name"):
        check_plan(plan)


def test_a_single_element_needs_no_stride(bundle: PlanBundle) -> None:
    """An output of one column, along which nothing moves."""
    plan = bundle.plan
    fields = encode(plan, Plan)
    for name in ("x", "y"):
        fields["values"][name] |= {"shape": [2, 1], "strides": [1, 0], "logical_shape": ["n", 1]}
    for port in (fields["inputs"][0], fields["outputs"][0]):
        port["shape"] = ["n", 1]
    problem = fields["steps"][0]["operator"]["problem"]
    problem["shape"] = [2, 1]
    for tensor in (*problem["inputs"], problem["y"]):
        tensor |= {"strides": [1, 0], "alignment": 4}
    check_plan(decode(fields, Plan, "plan"))


def chained(bundle: PlanBundle) -> Plan:
    """Y = (x + w) + w, over a value between them."""
    plan = bundle.plan
    (first,) = plan.steps
    middle = replace(plan.values["y"], name="m", buffer="bm")
    values = {**plan.values, "m": middle}
    buffers = {**plan.buffers, "bm": replace(plan.buffers["by"], name="bm")}

    def step(name: str, source: str, target: str) -> Step:
        operator = replace(first.operator, name=name, inputs=(source, "w"), outputs=(target,))
        return replace(first, operator=operator, inputs=(source, "w"))

    steps = (step("one", "x", "m"), step("two", "m", "y"))
    return replace(plan, values=values, buffers=buffers, steps=steps)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (("n", 9), r"\(2, 9\) is not as large as 16 elements"),
        ((2, 8), "is decided by nothing, its memory by n"),
        (("n", "n", 4), "is decided by n, n, its memory by n"),
        ((-2, -8), "-2 is not within 1"),
        ((), "is decided by nothing"),
        ((0, 8), r"\(0, 8\) is empty, its place has \(2, 8\) elements"),
    ],
)
def test_the_shape_of_a_value_must_fit_its_elements(
    bundle: PlanBundle, shape: tuple[int, ...], message: str
) -> None:
    plan = chained(bundle)
    middle = replace(plan.values["m"], logical_shape=shape)
    with pytest.raises(PlanError, match=f"m.logical_shape: {message}"):
        check_plan(replace(plan, values={**plan.values, "m": middle}))


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ((1, 0), r"steps\[0\].inputs\[0\]: 'm' is used before"),
        ((1,), r"steps\[0\].inputs\[0\]: 'm' is used before"),
        ((0,), r"outputs\[0\]: 'y' is used before"),
        ((0, 1, 0), "two are called 'one'"),
    ],
)
def test_steps_that_were_dropped_or_exchanged_are_noticed(
    bundle: PlanBundle, order: tuple[int, ...], message: str
) -> None:
    plan = chained(bundle)
    check_plan(plan)
    with pytest.raises(PlanError, match=message):
        check_plan(replace(plan, steps=tuple(plan.steps[number] for number in order)))


def joined(bundle: PlanBundle) -> Plan:
    """Two steps that write the columns of one output."""
    plan = bundle.plan
    (first,) = plan.steps
    problem = first.operator.problem
    assert isinstance(problem, Elementwise)
    y = replace(problem.y, strides=(16, 1))
    whole = Value(
        "y", plan.values["y"].dtype, Extent(2, "n"), (2, 16), (16, 1), 0, "by", 0, ("n", 16)
    )
    part = replace(whole, shape=(2, 8), logical_shape=("n", 8))
    values = {
        "x": plan.values["x"],
        "y": whole,
        "left": replace(part, name="left"),
        "right": replace(part, name="right", offset=32),
    }
    operator: Operator = replace(first.operator, problem=replace(problem, y=y))
    steps = tuple(
        replace(first, operator=replace(operator, name=name, outputs=(name,)))
        for name in ("left", "right")
    )
    outputs = (replace(plan.outputs[0], shape=("n", 16)),)
    buffers = {**plan.buffers, "by": Buffer("by", whole.span())}
    return replace(plan, values=values, buffers=buffers, steps=steps, outputs=outputs)


def test_parts_that_fill_an_output_are_taken_and_a_missing_one_is_noticed(
    bundle: PlanBundle,
) -> None:
    plan = joined(bundle)
    check_plan(plan)
    with pytest.raises(PlanError, match=r"outputs\[0\]: 'y' is used before all"):
        check_plan(replace(plan, steps=plan.steps[:1]))
    moved = replace(plan.values["right"], offset=16)
    with pytest.raises(PlanError, match="'right' would overwrite"):
        check_plan(replace(plan, values={**plan.values, "right": moved}))


@pytest.mark.parametrize("size", [1, 2, 3, 257, 3000])
def test_an_honest_plan_is_taken_at_every_size(bundle: PlanBundle, size: int) -> None:
    for plan in (bundle.plan, chained(bundle), joined(bundle)):
        check_sizes(plan, {"n": size})


def test_what_only_shows_at_another_size_is_found_there(bundle: PlanBundle) -> None:
    plan = joined(bundle)
    small = replace(plan.buffers["by"], bytes=2 * 16 * 4)
    plan = replace(plan, buffers={**plan.buffers, "by": small})
    check_plan(plan)
    with pytest.raises(PlanError, match="ends at byte 192 of buffer 'by', which has 128"):
        check_sizes(plan, {"n": 3})


def test_memory_that_no_gpu_has_is_refused(bundle: PlanBundle) -> None:
    with pytest.raises(PlanError, match=r"plan.buffers.b[xy].bytes: 1374389534720 is not within"):
        check_sizes(bundle.plan, {"n": 2**35 * 5 // 4})


def test_work_that_nobody_can_do_is_refused(bundle: PlanBundle) -> None:
    """A window of 2^31 - 1 squared over one element: no memory, but no end either."""
    one, tensor = Extent(1), Tensor(DType.FP32, (0, 0, 0, 0))
    step = (MAX_SIZE, MAX_SIZE)
    problem = Pooling(
        PoolKind.MAX, one, 1, 1, 1, 1, 1, step, step, (1, 1), (0, 0), (0, 0), False, tensor, tensor,
        Epilogue(),
    )  # fmt: skip
    with pytest.raises(PlanError, match="problem, operations: 4611686014132420609 is not within"):
        check_work(problem, {}, "problem")


@pytest.mark.usefixtures("one_cubin")
def test_a_model_that_uses_a_part_of_a_concatenation_gets_a_plan(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]>
    m (float[1,4,12] x) => (float[1,4,12] y) <int64[3] parts = {4, 7, 1}> {
        r = Relu(x)
        n = Neg(x)
        c = Concat<axis = 1>(x, r, n)
        y, a, b = Split<axis = 1>(c, parts)
    }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    optimize(tmp_path / "model.onnx", tmp_path / "model.plan", target="h200")
    assert read_plan(tmp_path / "model.plan").plan.outputs[0].name == "y"


@pytest.mark.usefixtures("one_cubin")
def test_what_kernels_read_early_is_a_constant(tmp_path: Path) -> None:
    """A value in its place would be read before the kernel in front has written it."""
    onnx.save(parse_model(one_operator.SQUEEZED, "d u"), tmp_path / "m.onnx")
    plan = optimize(
        tmp_path / "m.onnx", tmp_path / "m.plan", target="h200", search="static", check="off"
    ).plan
    (step,) = plan.steps
    names = (step.operator.inputs[0], "x", *step.operator.inputs[2:])
    forged = replace(step, inputs=names, operator=replace(step.operator, inputs=names))
    check_plan(plan)
    with pytest.raises(
        PlanError, match=r"inputs\[1\]: 'x' is a value, the problem reads a constant"
    ):
        check_plan(replace(plan, steps=(forged,)))
