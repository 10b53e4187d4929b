"""Kernels of every template as operators, which ``run_operator`` launches as Python does; on the double of the driver."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from subjects.c_engine import BUILD_VARIABLE
from subjects.core_operator import CoreCase, execute
from support.launches.recorded_lines import line_of, lines_of_maps
from support.plans.core_operators import NETWORKS, CoreOperator, core_operators
from support.plans.executed_plans import image
from support.plugins import on_the_double

from wpk.dims import DimNode, DimOperation
from wpk.dtypes import DType, Precision
from wpk.launch import (
    CounterArgument,
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
    WorkspaceArgument,
)
from wpk.schedules.registry import TEMPLATE_OF
from wpk.spec import (
    Dimension,
    Format,
    OperatorSpec,
    SpecKernel,
    SpecTensor,
    Variant,
    operator_bytes,
)

driver = pytest.importorskip("cuda.bindings.driver", reason="needs cuda-bindings (extra gpu)")

ROWS = 3
"""The size of the free dimension in operators of the double's own kernels."""

FEATURES = {
    "tensor maps",
    "workspace",
    "counters",
    "split",
    "several kernels",
    "clusters",
    "early launch",
    "> 48 KiB shared",
    "free batch",
}


@pytest.mark.slow
@pytest.mark.parametrize("precision", [Precision.FP16, Precision.FP32])
def test_the_operators_need_all_that_the_core_does(tmp_path: Path, precision: Precision) -> None:
    """What tests/gpu executes: every template, and everything that a launch can have."""
    operators = [each for name in NETWORKS for each in core_operators(name, precision, tmp_path)]
    assert {name for each in operators for name in each.features} == FEATURES
    families = {each.family for each in operators if "several kernels" not in each.features}
    missing = {"conv_halo"} if precision is Precision.FP32 else set()
    assert families == set(TEMPLATE_OF) - missing


class Double:
    """``run_operator`` on the double, on which real kernels do nothing."""

    def __init__(self, build: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.record = folder, folder / "calls"
        monkeypatch.setenv(BUILD_VARIABLE, str(build))
        for name, value in on_the_double(build, self.record).items():
            monkeypatch.setenv(name, value)

    def launched(self, operator: CoreOperator, expected: bytes, threads: int = 1) -> str:
        """What is wrong with the outputs."""
        return execute(operator.case(0, expected), self.folder, threads)

    @property
    def calls(self) -> list[str]:
        """What was recorded."""
        return self.record.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def double(sanitized: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Double:
    return Double(sanitized, tmp_path, monkeypatch)


def expected_lines(operator: CoreOperator, calls: list[str]) -> list[str]:
    """What Python asks for at the double's addresses: as launches, and once more for the graph."""
    places = [
        int(answer.split()[1]) for line, answer in pairwise(calls) if line.startswith("cuMemAlloc ")
    ]
    *operands, workspace, counters = places
    read = len(operator.spec.inputs)
    launches = operator.bound(operands[:read], operands[read:], workspace, counters)
    lines = [line_of(driver, each) for each in launches]
    nodes = [
        f"node {n} launch after {n - 1}" if n else "node 0 launch after" for n in range(len(lines))
    ]
    return [*lines_of_maps(driver, launches), *lines, *lines, *nodes]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "precision"),
    [
        ("channels_58", Precision.FP16),
        ("attention_with_mask", Precision.FP32),
        ("dense_concat", Precision.FP16),
    ],
)
def test_the_driver_is_asked_for_what_python_asks_for(
    double: Double, tmp_path: Path, network: str, precision: Precision
) -> None:
    for operator in core_operators(network, precision, tmp_path):
        untouched = b"".join(each.tobytes() for each in operator.outputs)
        assert not double.launched(operator, untouched), operator.name
        calls = double.calls
        names = ("cuTensorMapEncode", "cuLaunchKernelEx", "node")
        assert [line for line in calls if line.startswith(names)] == expected_lines(operator, calls)
        assert calls[-1] == "left 0"
        asked = [int(line.split()[1]) for line in calls if line.startswith("cuMemAlloc ")]
        sizes = (operator.asked(WorkspaceArgument), operator.asked(CounterArgument))
        assert all(size <= room for size, room in zip(sizes, asked[-2:], strict=True))


def sums() -> tuple[OperatorSpec, bytes, bytes]:
    """An operator of two of the double's kernels, one behind the other: its spec, operands and results."""
    rng = np.random.default_rng(1)
    x, w = (rng.integers(-9, 9, (ROWS, 4)).astype(np.float32) for _ in range(2))
    add = SpecKernel("a" * 64, "add", "sm_90a", image("ppip"))
    copy = SpecKernel("b" * 64, "copy", "sm_90a", image("pip"))
    count = SizeArgument(DimNode(DimOperation.PROD, "batch", 4))
    first = (InputArgument(0), InputArgument(1), count, OutputArgument(0))
    second = (InputArgument(1), count, OutputArgument(1))
    launches = tuple(
        Launch(kernel.digest, kernel.entry, ("batch", 1, 1), (32, 1, 1), 0, arguments)
        for kernel, arguments in ((add, first), (copy, second))
    )
    tensor = SpecTensor(DType.FP32, ("batch", 4))
    spec = OperatorSpec(
        "sums",
        (Dimension("batch", 0, 0),),
        (tensor, tensor),
        (tensor, tensor),
        (add, copy),
        (Variant("only", (Format.LINEAR,) * 4, launches),),
    )
    poison = b"\xff" * (2 * x.nbytes)
    return spec, x.tobytes() + w.tobytes() + poison, (x + w).tobytes() + w.tobytes()


def case_of_sums(expected: bytes | None = None) -> CoreCase:
    spec, data, right = sums()
    wanted = right if expected is None else expected
    return CoreCase("", "sums", frozenset(), operator_bytes(spec), (ROWS,), data, wanted)


@pytest.mark.parametrize("threads", [1, 8])
def test_each_thread_gets_the_results(double: Double, threads: int) -> None:
    assert not execute(case_of_sums(), double.folder, threads)
    assert double.calls[-1] == "left 0"
    assert not [line for line in double.calls if line.startswith("wrong")]


def test_other_results_are_noticed(double: Double) -> None:
    _, _, right = sums()
    wrong = case_of_sums(right[:-1] + bytes([right[-1] ^ 1]))
    assert execute(wrong, double.folder, 3) == "6 of 6 results differ"


def test_a_damaged_spec_is_refused(double: Double) -> None:
    whole = case_of_sums()
    said = execute(replace(whole, spec=whole.spec[:-1]), double.folder, 1)
    assert said.startswith("exit code 1: ")
    assert "; fix: " in said
