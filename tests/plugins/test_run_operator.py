"""Kernels of every template as operators, which ``run_operator`` launches as Python does; on the double of the driver."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from subjects.c_engine import BUILD_VARIABLE
from subjects.core_operator import CoreCase, execute
from support.launches.recorded_lines import line_of, lines_of_maps
from support.plans import kernel_cases
from support.plans.core_operators import (
    NETWORKS,
    bound,
    core_cases,
    core_operators,
    counters_of,
    workspace_of,
)
from support.plans.executed_plans import image
from support.plans.quick_search import OneForAll
from support.plugins import on_the_double

from wpk.dims import DimNode, DimOperation
from wpk.dtypes import DType, Precision
from wpk.launch import (
    InputArgument,
    Launch,
    OutputArgument,
    SizeArgument,
)
from wpk.schedules.registry import TEMPLATE_OF
from wpk.spec import (
    Dimension,
    Format,
    OperatorSpec,
    SpecKernel,
    SpecTensor,
    Variant,
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
@pytest.mark.parametrize(
    "precision", [Precision.FP16, pytest.param(Precision.FP32, marks=pytest.mark.exhaustive)]
)
def test_the_operators_need_all_that_the_core_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: Precision
) -> None:
    """What tests/gpu executes: every template, and everything that a launch can have."""
    monkeypatch.setattr(kernel_cases, "CompilePool", OneForAll)  # nothing executes them here
    found = [each for name in NETWORKS for each in untouching(name, precision, tmp_path)]
    assert {name for each in found for name in each.features} == FEATURES
    families = {each.family for each in found if "several kernels" not in each.features}
    missing = {"box_selection"}  # what it selects is handed to ONNX Runtime
    of_16_bits = {
        "attention_wgmma",
        "conv_grouped",
        "conv_halo",
        "feed_forward_wgmma",
        "recurrence_mma",
        "thin_wgmma",
    }
    missing |= of_16_bits if precision is Precision.FP32 else set()
    assert families == set(TEMPLATE_OF) - missing


def untouching(network: str, precision: Precision, folder: Path) -> list[CoreCase]:
    """Cases whose outputs are what they were before, as on the double."""
    operators = core_operators(network, precision, folder)
    return core_cases(operators, [b"".join(map(bytes, each.outputs)) for each in operators])


class Double:
    """``run_operator`` on the double, on which real kernels do nothing."""

    def __init__(self, build: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.record = folder, folder / "calls"
        monkeypatch.setenv(BUILD_VARIABLE, str(build))
        for name, value in on_the_double(build, self.record).items():
            monkeypatch.setenv(name, value)

    @property
    def calls(self) -> list[str]:
        """What was recorded."""
        return self.record.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def double(sanitized: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Double:
    return Double(sanitized, tmp_path, monkeypatch)


def memory(calls: list[str]) -> list[tuple[int, int]]:
    """Size and address of each allocation."""
    return [
        (int(line.split()[1]), int(answer.split()[1]))
        for line, answer in pairwise(calls)
        if line.startswith("cuMemAlloc ")
    ]


def expected_lines(spec: OperatorSpec, addresses: list[int]) -> list[str]:
    """What Python asks for at the double's addresses: as launches, and once more for the graph."""
    *operands, workspace, counters = addresses
    read = len(spec.inputs)
    launches = bound(spec, operands[:read], operands[read:], workspace, counters)
    lines = [line_of(driver, each) for each in launches]
    nodes = ["node 0 launch after", *(f"node {n + 1} launch after {n}" for n in range(len(lines)))]
    return [*lines_of_maps(driver, launches), *lines, *lines, *nodes[: len(lines)]]


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
    double: Double, network: str, precision: Precision
) -> None:
    names = ("cuTensorMapEncode", "cuLaunchKernelEx", "node")
    for case in untouching(network, precision, double.folder):
        assert not execute(case, double.folder, 1), case.spec.name
        sizes, addresses = zip(*memory(double.calls), strict=True)
        lines = [line for line in double.calls if line.startswith(names)]
        assert lines == expected_lines(case.spec, list(addresses))
        assert double.calls[-1] == "left 0"
        assert workspace_of(case.spec) <= sizes[-2]
        assert counters_of(case.spec) <= sizes[-1]


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
    return spec, x.tobytes() + w.tobytes(), (x + w).tobytes() + w.tobytes()


def case_of_sums(expected: bytes | None = None) -> CoreCase:
    spec, operands, right = sums()
    wanted = right if expected is None else expected
    poison = b"\xff" * len(right)
    return CoreCase("", "sums", frozenset(), spec, (ROWS,), operands, poison, wanted)


@pytest.mark.parametrize("threads", [1, 8])
def test_each_thread_gets_the_results(double: Double, threads: int) -> None:
    assert not execute(case_of_sums(), double.folder, threads)
    assert double.calls[-1] == "left 0"
    assert not [line for line in double.calls if line.startswith("wrong")]


def test_other_results_are_noticed(double: Double) -> None:
    _, _, right = sums()
    wrong = case_of_sums(right[:-1] + bytes([right[-1] ^ 1]))
    assert execute(wrong, double.folder, 3) == "6 of 6 results differ"


def test_an_operator_that_does_not_add_up_is_refused(double: Double) -> None:
    case = case_of_sums()
    other = replace(case.spec, dimensions=(Dimension("batch", 0, 1),))
    said = execute(replace(case, spec=other), double.folder, 1)
    assert said.startswith("exit code 1: ")
    assert "; fix: " in said
