"""Launches that C++ binds ask CUDA's driver, here its double, for what those that Python binds ask for."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.launches.recorded_lines import line_of, line_of_map, lines_of_maps
from support.plans.executed_plans import image
from support.plugins import on_the_double

from wpk.dims import DimExpr, DimNode, DimOperation
from wpk.dtypes import DType
from wpk.execution import TensorMap
from wpk.launch import (
    EARLY_LAUNCH,
    Argument,
    CounterArgument,
    Im2col,
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
    TensorMapArgument,
    WorkspaceArgument,
)
from wpk.plan.binding import StepAddresses, bind_launch, bind_map
from wpk.schedules.unit import fp32_as_int32
from wpk.spec import (
    Dimension,
    Format,
    OperatorSpec,
    SpecKernel,
    SpecTensor,
    Variant,
    operator_bytes,
)
from wpk.tensor_maps import faults

driver = pytest.importorskip("cuda.bindings.driver", reason="needs cuda-bindings (extra gpu)")

INPUTS = (DType.FP16, DType.FP32)
ELEMENT_BYTES = tuple(each.bytes for each in INPUTS)
SHARED_ATTRIBUTE, CLUSTER_ATTRIBUTE = (
    int(getattr(driver.CUfunction_attribute, f"CU_FUNC_ATTRIBUTE_{name}"))
    for name in ("MAX_DYNAMIC_SHARED_SIZE_BYTES", "NON_PORTABLE_CLUSTER_SIZE_ALLOWED")
)

CEILED = DimNode(DimOperation.CEIL_DIV, "length", 128)
TILED = TensorMapArgument(0, (64, "batch"), (128,), (64, 8), 128)
ROW = TensorMapArgument(0, ("length",), (), (8,), 0)
IM2COL = TensorMapArgument(
    1,
    (32, 14, 15, "batch"),
    (128, 1792, 26880),
    (16, 128),
    64,
    Im2col((-1, -2), (1, 2), (2, 3)),
    to_tf32=True,
)
PLAIN = Launch("a" * 64, "plain", (CEILED, "batch", 1), (128, 2, 1), 0, ())
EVERYTHING = Launch(
    "b" * 64,
    "everything",
    (DimNode(DimOperation.PROD, CEILED, 4), "batch", 3),
    (384, 1, 2),
    200_000,
    (
        InputArgument(1),
        InputArgument(0),
        SizeArgument(DimNode(DimOperation.SUB, "batch", "length")),
        SizeArgument(2**31 - 1),
        SizeArgument(fp32_as_int32(-0.0312)),
        TILED,
        ROW,
        IM2COL,
        OutputArgument(0),
        WorkspaceArgument(DimNode(DimOperation.PROD, "batch", 4096)),
        CounterArgument(7),
    ),
    (4, 1, 3),
    (EARLY_LAUNCH,),
)
PLACES = StepAddresses((0x10000, 0x20000), ELEMENT_BYTES, (2**63 + 0x30001,), 0x40000, 0x50000)


@dataclass(frozen=True)
class Answer:
    """What became of launches: a line for each set of addresses, and what the driver was asked for."""

    lines: list[str]
    calls: list[str]


@dataclass(frozen=True)
class Double:
    """``plugins/tests/print_launches.cpp`` on the double of the driver."""

    build: Path
    folder: Path

    def launched(
        self,
        launches: Sequence[Launch],
        places: Sequence[StepAddresses] = (PLACES,),
        dims: tuple[int, int] = (6, 300),
        failing_call: int = 0,
    ) -> Answer:
        (self.folder / "spec").write_bytes(operator_bytes(operator(launches)))
        record = self.folder / "calls"
        sets = [(*each.inputs, *each.outputs, each.workspace, each.counters) for each in places]
        done = subprocess.run(
            [
                self.build / "plugins" / "tests" / "print_launches",
                self.folder / "spec",
                *map(str, dims),
            ],
            input="".join(" ".join(map(str, each)) + "\n" for each in sets),
            env=on_the_double(self.build, record, failing_call),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        calls = record.read_text().splitlines()
        assert calls[-1] == "left 0"
        assert not [line for line in calls if line.startswith("wrong")]
        return Answer(done.stdout.splitlines(), calls)


@pytest.fixture(scope="module")
def double(sanitized: Path, tmp_path_factory: pytest.TempPathFactory) -> Double:
    return Double(sanitized, tmp_path_factory.mktemp("launches"))


def operator(launches: Sequence[Launch]) -> OperatorSpec:
    """An operator of one variant over two free dimensions, whose kernels read nothing."""
    by_digest = {launch.kernel: launch for launch in launches}
    kernels = tuple(
        SpecKernel(digest, launch.entry, "sm_90a", image(letters(launch.arguments)))
        for digest, launch in by_digest.items()
    )
    shapes: tuple[tuple[DimExpr, ...], ...] = (("batch", 64), (3, "length"))
    return OperatorSpec(
        "o",
        (Dimension("batch", 0, 0), Dimension("length", 1, 1)),
        tuple(SpecTensor(dtype, shape) for dtype, shape in zip(INPUTS, shapes, strict=True)),
        (SpecTensor(DType.FP32, ("batch",)),),
        kernels,
        (Variant("only", (Format.LINEAR,) * 3, tuple(launches)),),
    )


def letters(arguments: Sequence[Argument]) -> str:
    """Kinds of parameters, as the double wants them: numbers, and addresses that it does not read."""
    return "".join("i" if isinstance(each, SizeArgument) else "a" for each in arguments)


def expected(launches: Sequence[Launch], places: StepAddresses, dims: dict[str, int]) -> list[str]:
    """Lines of the double for launches that are bound for the first time."""
    bound = [bind_launch(launch, places, dims) for launch in launches]
    return [*lines_of_maps(driver, bound), *(line_of(driver, each) for each in bound)]


def asked(answer: Answer) -> list[str]:
    names = ("cuTensorMapEncode", "cuLaunchKernelEx")
    return [line for line in answer.calls if line.startswith(names)]


@pytest.mark.parametrize("sizes", [(6, 300), (1, 128), (65535, 1)])
def test_the_driver_is_asked_for_what_python_asks_for(
    double: Double, sizes: tuple[int, int]
) -> None:
    launches = (EVERYTHING, PLAIN)
    dims = {"batch": sizes[0], "length": sizes[1]}
    answer = double.launched(launches, dims=sizes)
    assert asked(answer) == expected(launches, PLACES, dims)
    assert answer.lines == [f"{4096 * sizes[0]} 28"]


def test_kernels_are_given_the_most_that_their_launches_ask_for(double: Double) -> None:
    more = replace(PLAIN, shared_bytes=50_000, cluster=(2, 1, 1))
    large = replace(EVERYTHING, cluster=(4, 1, 3), arguments=())
    answer = double.launched((PLAIN, more, large, PLAIN))
    given = [line for line in answer.calls if line.startswith("cuKernelSetAttribute")]
    assert given == [
        f"cuKernelSetAttribute {SHARED_ATTRIBUTE} 50000",
        f"cuKernelSetAttribute {SHARED_ATTRIBUTE} 200000",
        f"cuKernelSetAttribute {CLUSTER_ATTRIBUTE} 1",
    ]


def test_a_move_encodes_only_the_tensor_maps_whose_address_changed(double: Double) -> None:
    second = replace(PLACES, inputs=(0x10000, 0x20100), outputs=(0x60000,), workspace=0x70000)
    places = [PLACES, second, second, replace(second, inputs=(0x10010, 0x20100), counters=4)]
    answer = double.launched((EVERYTHING,), places)
    dims = {"batch": 6, "length": 300}
    bound = [bind_launch(EVERYTHING, each, dims) for each in places]
    lines = expected((EVERYTHING,), PLACES, dims)
    for before, after in pairwise(bound):
        both = zip(before.arguments, after.arguments, strict=True)
        moved = [new for old, new in both if isinstance(new, TensorMap) and old != new]
        lines += [*(line_of_map(driver, each) for each in moved), line_of(driver, after)]
    assert asked(answer) == lines
    assert len(set(answer.lines)) == 1


@pytest.mark.parametrize(
    ("launch", "dims", "reason"),
    [
        (PLAIN, (65536, 1), "65536 blocks along axis 1, 1 to 65535 are allowed"),
        (PLAIN, (6, 0), "0 blocks along axis 0"),
        (PLAIN, (6, 2**38 + 1), "blocks along axis 0"),
        (replace(PLAIN, arguments=(SizeArgument("length"),)), (6, 2**31), "no int32"),
        (replace(PLAIN, grid=(1, 1, 1), arguments=(TILED,)), (0, 1), "extent or a stride of 0"),
        (replace(PLAIN, grid=(1, 1, 1), arguments=(TILED,)), (2**32 + 1, 1), "4294967297"),
        (replace(PLAIN, arguments=(replace(TILED, swizzle=16),)), (6, 1), "a swizzle of 16"),
    ],
)
def test_launches_that_cannot_be_are_refused_in_words(
    double: Double, launch: Launch, dims: tuple[int, int], reason: str
) -> None:
    (line,) = double.launched((launch,), dims=dims).lines
    assert line.startswith("error 0: ")
    assert reason in line
    assert "; fix: " in line


def test_an_address_that_is_not_aligned_is_refused_and_the_next_move_takes(double: Double) -> None:
    wrong = replace(PLACES, inputs=(0x10008, 0x20000))
    right = replace(PLACES, inputs=(0x10010, 0x20000))
    answer = double.launched((EVERYTHING,), [PLACES, wrong, right])
    assert "input 0 begins at address 65544, multiples of 16" in answer.lines[1]
    last = bind_launch(EVERYTHING, right, {"batch": 6, "length": 300})
    assert asked(answer)[-1] == line_of(driver, last)


def test_negative_sizes_of_workspace_are_refused(double: Double) -> None:
    less = DimNode(DimOperation.SUB, "batch", 7)
    (line,) = double.launched((replace(PLAIN, arguments=(WorkspaceArgument(less),)),)).lines
    assert "asks for -1 bytes" in line


def test_whatever_call_fails_it_is_told_and_all_is_given_back(double: Double) -> None:
    calls = 0
    while "error" in (answer := double.launched((EVERYTHING,), failing_call=calls + 1)).lines[0]:
        calls += 1
        assert "the driver cannot " in answer.lines[0] or "does not start" in answer.lines[0]
        assert "; fix: " in answer.lines[0]
    assert calls > len(asked(answer)) + 5


def near(*values: int) -> st.SearchStrategy[int]:
    """Numbers around limits, and what is certainly possible."""
    return st.sampled_from(sorted({each + by for each in values for by in (-1, 0, 1)}))


@st.composite
def maps(draw: st.DrawFn) -> TensorMapArgument:
    """Tensor maps of which most are possible but for one number or two."""
    is_im2col = draw(st.booleans())
    rank = draw(st.integers(3 if is_im2col else 1, 5))
    index, odd = draw(st.integers(0, 1)), st.integers(0, 5).map(lambda n: n == 0)

    def number(plain: int, unusual: st.SearchStrategy[int]) -> int:
        return draw(unusual) if draw(odd) else plain

    mode = None
    if is_im2col:
        corner = near(0, -16, 15, -128, 127, -(2**15), 2**15 - 1)
        lower = [number(-1, corner) for _ in range(rank - 2)]
        upper = [number(1, corner) for _ in range(rank - 2)]
        steps = [max(0, number(2, near(1, 8))) for _ in range(rank - 2)]
        mode = Im2col(tuple(lower), tuple(upper), tuple(steps))
    outer = [64] if is_im2col else [8] * (rank - 1)
    box = (number(32, near(1, 8, 256)), *(number(each, near(1, 256, 1024)) for each in outer))
    return TensorMapArgument(
        index,
        tuple(number(20, near(1, 2**32)) for _ in range(rank)),
        tuple(number(256, st.sampled_from([0, 8, 16, 2**40 - 16, 2**40])) for _ in range(rank - 1)),
        box,
        number(128, st.sampled_from([0, 16, 32, 64])),
        mode,
        draw(odd),
    )


@settings(max_examples=150, deadline=None)
@given(argument=maps())
def test_tensor_maps_are_refused_where_python_refuses_them(
    double: Double, argument: TensorMapArgument
) -> None:
    tensor = bind_map(argument, PLACES.inputs[argument.index], ELEMENT_BYTES[argument.index], {})
    answer = double.launched((replace(PLAIN, grid=(1, 1, 1), arguments=(argument,)),))
    found = list(faults(tensor))
    assert answer.lines[0].startswith("error 0: a tensor map ") == bool(found), found
    assert asked(answer)[:1] == ([] if found else [line_of_map(driver, tensor)])
