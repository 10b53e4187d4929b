"""What is wrong at ragged edges alone is found on an odd sibling. The emulator stands in for the GPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from subjects.problems import channels_last
from support.devices.dummy_gpu import DummyGpu
from support.faults.planter import Fault, change, plant, put
from support.plans.candidates import kernel
from support.problems import attentions
from support.problems.fused_convolutions import fused_convolution
from support.problems.warpgroup_layers import with_moments

from wpk.assembly.implementation import generated
from wpk.build import CompilePool, KernelCache
from wpk.candidate import Candidate
from wpk.dtypes import DType, Precision
from wpk.emulator import CHECKING
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.lowering.program import Operator
from wpk.phases import Phases
from wpk.problems import (
    ClampedConvolution,
    Convolution,
    Epilogue,
    Matmul,
    NormKind,
    Pooling,
    Problem,
    Tensor,
)
from wpk.problems.pooling import PoolKind
from wpk.schedules.attention_mma import AttentionMmaSchedule
from wpk.schedules.registry import TEMPLATE_OF
from wpk.schedules.template import Schedule
from wpk.schedules.tiles.mma import MmaSchedule
from wpk.schedules.tiles.simt import SimtSchedule
from wpk.search.store.records import Stage
from wpk.targets.registry import find_target
from wpk.trial import Regime, Status
from wpk.trial_bench.bench import Bench
from wpk.trial_bench.compile_ahead import CompileAhead, KernelOrder
from wpk.trial_bench.gpu_lease import GpuLease
from wpk.trial_bench.odd_case import odd_case
from wpk.trial_bench.odd_shapes import OddShapes, OddVerdict, sibling_of
from wpk.trial_bench.request import Request
from wpk.trial_bench.trials import TrialRunner, Way

H200 = find_target("h200")
MMA = MmaSchedule(block_m=32, block_n=32, block_k=32, warps_m=1, warps_n=1, stages=2)
SIMT = SimtSchedule(
    block_m=32, block_n=32, block_k=16, thread_m=4, thread_n=4, row_major=0, padding=4, prefetch=1
)
ATTENTION = AttentionMmaSchedule(warps_m=2, warps_n=2, block_n=16, stages=2)

opened: list[DummyGpu] = []


def _open() -> DummyGpu:
    opened.append(DummyGpu(lambda *_: (1e-6,), mode=CHECKING))
    return opened[-1]


@dataclass
class Bed:
    """What a schedule is compiled and executed with."""

    ahead: CompileAhead
    lease: GpuLease
    submitted: list[str]

    def odd(self) -> OddShapes:
        return OddShapes(H200, self.lease, self.ahead)

    def bench(self, wanted: KernelOrder) -> Bench:
        case = odd_case(wanted.problem)  # type: ignore[arg-type]
        assert case is not None
        runner = TrialRunner(self.lease, {wanted.problem: case}, Regime.WARM)
        return Bench(self.ahead, runner, self.odd(), Phases())

    def on_itself(self, wanted: KernelOrder) -> Status:
        """What becomes of the schedule on the problem itself."""
        case = odd_case(wanted.problem)  # type: ignore[arg-type]
        assert case is not None
        (built,) = self.ahead.get([wanted])
        kernels = {o.source.digest: o.kernel for o in built.outcomes if o.kernel is not None}
        runner = TrialRunner(self.lease, {wanted.problem: case}, Regime.WARM)
        implementation = generated(wanted.problem, built.finalist)
        return runner.trial(wanted.problem, implementation, kernels, Way(timed=False)).status


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CompilePool]:
    folder = tmp_path_factory.mktemp("cache")
    with CompilePool(H200.arch, cache=KernelCache(folder), workers=1) as pool:
        yield pool


@pytest.fixture
def bed(pool: CompilePool) -> Iterator[Bed]:
    opened.clear()
    submitted: list[str] = []

    def submit(source: Any) -> Any:
        submitted.append(source.text)
        return pool.submit(source)

    with CompileAhead(H200, submit) as ahead, GpuLease(_open) as lease:  # type: ignore[arg-type]
        yield Bed(ahead, lease, submitted)


def _matmul(m: int = 64, n: int = 64, k: int = 64) -> Matmul:
    a, y = (Tensor(DType.FP16, (0, 0, row, 1)) for row in (k, n))
    extents = (Precision.FP16, (Extent(1), 1), Extent(m), n, k)
    return Matmul(*extents, a, Tensor(DType.FP16, (0, 0, n, 1)), True, y, Epilogue())


def _clamped() -> ClampedConvolution:
    plain = fused_convolution(filter=1)
    fields = {name: getattr(plain, name) for name in plain.__dataclass_fields__}
    limit = Tensor(DType.FP16, (0, 1, 0, 0))
    return ClampedConvolution(**fields, lower=limit, upper=limit)


def _first_layer() -> Convolution:
    """An image of three channels, a plane each, as models are given them."""
    image = Tensor(DType.FP32, (3 * 14 * 14, 14 * 14, 14, 1), 0, 8)
    return replace(fused_convolution(c=3, k=32, stride=2), x=image)


SMALL = {"c": 32, "k": 32, "size": 8}
BIAS = apply("Relu", apply("Add", Acc(), Operand(0)))


def _order(problem: Problem, template: str, schedule: Schedule) -> KernelOrder:
    return KernelOrder(problem, Candidate(TEMPLATE_OF[template].maker, schedule.parameters()))


RIGHT: dict[str, KernelOrder] = {
    "convolution": _order(fused_convolution(expression=BIAS, **SMALL), "conv_mma", MMA),
    "clamped": _order(_clamped(), "conv_mma", MMA),
    "first layer": _order(_first_layer(), "conv_simt", SIMT),
    "product": _order(_matmul(), "gemm_simt", SIMT),
    "rows with moments": _order(
        with_moments(_matmul(), NormKind.LAYER), "gemm_mma", replace(MMA, block_n=64)
    ),
    "attention": _order(attentions.attention(64, 64, 32), "attention_mma", ATTENTION),
}
FAULTS = {
    fault.name: (wanted, fault)
    for wanted, fault in (
        (
            RIGHT["product"],
            Fault(
                "the end of a sum counts the next row's elements",
                change("end_of_row", "row.exists && column < Columns", "row.exists"),
            ),
        ),
        (
            RIGHT["convolution"],
            Fault(
                "rows of an image are as long as it is high",
                put("pixel_of_row", "const int p = pixel / P::p, q = pixel % P::p;"),
            ),
        ),
        (
            RIGHT["attention"],
            Fault(
                "keys behind the last one count",
                change("last_key", "lengths.keys()", "Shape::keys * 99"),
            ),
        ),
    )
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_right_on_its_sibling(name: str, bed: Bed) -> None:
    assert bed.odd().verdict(RIGHT[name]) == OddVerdict()
    assert len(opened) == 1
    assert opened[0].is_alive


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_even_sizes_hide_is_found(
    name: str, bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, fault = FAULTS[name]
    faulty = plant(TEMPLATE_OF[wanted.candidate.maker.name], fault)
    monkeypatch.setitem(TEMPLATE_OF, wanted.candidate.maker.name, faulty)
    assert bed.on_itself(wanted) is Status.OK
    verdict = bed.odd().verdict(wanted)
    assert verdict.wrong.startswith("on the odd shape ")
    assert not verdict.unchecked
    assert not opened[-1].is_alive  # nothing of the wrong one is left


def test_right_moments_are_right(bed: Bed) -> None:
    assert bed.on_itself(RIGHT["rows with moments"]) is Status.OK


def test_wrong_moments_beside_right_rows_are_found(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = Fault("squares are not centred", change("squares_centred", " - mean", ""))
    wanted = RIGHT["rows with moments"]
    monkeypatch.setitem(TEMPLATE_OF, "gemm_mma", plant(TEMPLATE_OF["gemm_mma"], fault))
    assert bed.on_itself(wanted) is Status.WRONG_RESULT


def _request(wanted: KernelOrder, stage: Stage) -> Request:
    return Request(wanted.problem, wanted.candidate, stage)


def test_the_bench_refuses_what_may_be_chosen_and_lets_the_search_go_on(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, fault = FAULTS["keys behind the last one count"]
    monkeypatch.setitem(
        TEMPLATE_OF,
        wanted.candidate.maker.name,
        plant(TEMPLATE_OF[wanted.candidate.maker.name], fault),
    )
    bench = bed.bench(wanted)
    (searched,) = bench.measure([_request(wanted, Stage.SEARCH)])
    assert searched.status is Status.OK
    (final,) = bench.measure([_request(wanted, Stage.FINAL)])
    assert final.status is Status.WRONG_RESULT
    assert "on the odd shape attention" in final.detail
    assert not final.seconds
    others = list(bench.kernels())
    assert len(others) == 1  # of what was measured; nothing of the sibling


def test_the_bench_times_what_is_right_and_says_what_was_not_checked(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = RIGHT["product"]
    (trial,) = bed.bench(wanted).measure([_request(wanted, Stage.FINAL)])
    assert (trial.status, trial.detail) == (Status.OK, "")
    monkeypatch.setattr(type(wanted.problem), "odd_siblings", lambda _problem: iter(()))
    (trial,) = bed.bench(wanted).measure([_request(wanted, Stage.FINAL)])
    assert trial.status is Status.OK
    assert trial.seconds
    assert trial.detail.startswith("not checked on an odd shape: the schedule is legal for none")


def test_a_schedule_is_compiled_and_executed_once(bed: Bed) -> None:
    odd, wanted = bed.odd(), RIGHT["product"]
    odd.expect([wanted])
    assert odd.verdict(wanted) is odd.verdict(wanted)
    odd.expect([wanted])
    assert len(bed.submitted) == 1
    assert bed.ahead.compilations() == []  # nothing is made of the sibling's kernel


def test_what_is_expected_compiles_before_it_is_asked_and_what_is_dropped_is_forgotten(
    bed: Bed,
) -> None:
    odd, wanted = bed.odd(), RIGHT["product"]
    odd.expect([wanted])
    bed.ahead.get([sibling_of(wanted, H200)])  # type: ignore[list-item]
    compiled = len(bed.submitted)
    odd.drop([wanted])
    odd.drop([wanted])
    assert bed.ahead.compilations() == []
    assert odd.verdict(wanted) == OddVerdict()
    assert len(bed.submitted) == compiled


def test_what_has_no_reference_is_said_to_be_unchecked(bed: Bed) -> None:
    image = channels_last(DType.FP16, 8, 4, 4)
    window = ((2, 2), (2, 2), (1, 1), (0, 0), (0, 0), False)
    y = channels_last(DType.FP16, 8, 2, 2)
    sizes = (PoolKind.MAX, Extent(1), 8, 4, 4, 2, 2)
    pooling = Pooling(*sizes, *window, image, y, Epilogue())
    verdict = bed.odd().verdict(KernelOrder(pooling, kernel("pooling", ())))
    assert verdict.unchecked.startswith("not checked on an odd shape: there is no reference for")
    assert not bed.submitted


def test_what_is_not_a_number_at_random_operands_is_not_judged(bed: Bed) -> None:
    problem = replace(_matmul(), epilogue=Epilogue(apply("Sqrt", Acc())))
    verdict = bed.odd().verdict(_order(problem, "gemm_simt", SIMT))
    assert "is not a number everywhere" in verdict.unchecked
    assert not opened


def test_a_schedule_without_a_legal_sibling_says_why() -> None:
    huge = replace(MMA, block_m=8192)
    sibling = sibling_of(_order(RIGHT["convolution"].problem, "conv_mma", huge), H200)
    assert isinstance(sibling, str)
    assert sibling.startswith("the schedule is legal for none, at last: ")


def test_the_case_of_a_problem_is_of_its_sizes() -> None:
    wanted = sibling_of(RIGHT["attention"], H200)
    assert isinstance(wanted, KernelOrder)
    case = odd_case(wanted.problem)  # type: ignore[arg-type]
    assert case is not None
    assert case.result is not None
    (operator,) = case.program.operators
    assert isinstance(operator, Operator)
    assert operator.problem == wanted.problem
    assert np.isfinite(case.result.outputs["y"]).all()
