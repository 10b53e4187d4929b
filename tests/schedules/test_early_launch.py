"""Early launch in the templates: the same numbers, nothing touched before the wait, and who may ask for it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from early_kernels import CASES, Case, Fault, Faulty, operands, schedule
from numpy.typing import NDArray

from wpk.build.nvrtc import NvrtcError, load_nvrtc
from wpk.emulator.errors import EmulatorError
from wpk.expression import Scalar
from wpk.launch import EARLY_LAUNCH
from wpk.problems import Elementwise
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target

H200, A100 = find_target("h200"), find_target("a100")
_TOUCHED = "touched before waitForPrevious"
_COPIED = "copied before waitForPrevious"
_ENDED = "ends without waitForPrevious"
ONE_OF_EACH = list({case.template: case for case in CASES}.values())


def _name(case: Case) -> str:
    return f"{case.template} {' '.join(map(str, case.schedule.values()))}"


def run(case: Case, execution: Any, template: Any, early: int) -> NDArray[Any]:
    y: NDArray[Any] = execution.run(
        template, case.problem, schedule(case, early), operands(case, seed=7), case.output
    )
    return y


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_an_early_launch_gives_the_same_numbers_and_touches_nothing_before_the_wait(
    case: Case, checking_execution: Any, fast_execution: Any
) -> None:
    template = TEMPLATE_OF[case.template]
    (launch,) = template.launches(case.problem, schedule(case, 1))
    assert launch.attributes == (EARLY_LAUNCH,)
    early = run(case, checking_execution, template, 1)
    assert np.isfinite(early).all()
    np.testing.assert_array_equal(early, run(case, fast_execution, template, 0))


STREAMING = ("pooling", "pad", "resize", "gather", "elementwise", "reduction", "normalisation")
_RETURN = "    if (item >= Place::items(n))\n        return;\n"
_START = "    startIfEarly<Schedule>();\n"
_FILL = "    Operands::fill(inputs.at, at);\n"
_WAIT = "    waitIfEarly<Schedule>();\n"
_QUERIES = "    tiles.beginQueries(firstRow);\n"
_WAIT_FOR_A = "    if constexpr (ConstantB)\n        waitIfEarly<Shape>();\n"
_A = "    loaderA.begin(shared);\n"
_PRODUCTS = ("conv_simt", "gemm_simt")
_WAIT_OF_RING = "    if (Shape::early)\n        waitForPrevious();\n"


FAULTS = [
    *(Fault("no wait", name, _START, "", _TOUCHED) for name in STREAMING),
    *(
        Fault("threads without work do not wait", name, _START + _RETURN, _RETURN + _START, _ENDED)
        for name in ("pooling", "pad", "resize", "gather")
    ),
    Fault("released, but not waited", "pooling", _START, "    releaseNext();\n", _TOUCHED),
    Fault("no wait", "depthwise", "    waitIfEarly<Schedule>(); //", "    //", _TOUCHED),
    Fault("pixels taken for weights", "depthwise", "at[1], r, part", "at[0], r, part", _TOUCHED),
    Fault("no wait", "elementwise_tiled", _WAIT, "", _TOUCHED),
    Fault("no wait", "attention_simt", _START, "", _TOUCHED),
    Fault("no wait", "attention_mma", _WAIT, "", _COPIED),
    Fault("asked for too early", "attention_mma", _WAIT + _QUERIES, _QUERIES + _WAIT, _COPIED),
    Fault("filled too early", "elementwise_tiled", _WAIT + _FILL, _FILL + _WAIT, _TOUCHED),
    *(Fault("no wait", name, _WAIT_FOR_A, "", _TOUCHED) for name in _PRODUCTS),
    *(
        Fault("pixels asked for too early", name, _WAIT_FOR_A + _A, _A + _WAIT_FOR_A, _TOUCHED)
        for name in _PRODUCTS
    ),
    Fault(
        "a computed operand taken for a constant",
        *("gemm_simt", "<Shape, Problem::b_constant>", "<Shape, true>", _TOUCHED),
    ),
    Fault("no wait", "conv_patch", _WAIT, "", _TOUCHED),
    *(Fault("no wait", name, _WAIT_OF_RING, "", _COPIED) for name in ("conv_mma", "gemm_mma")),
    Fault(
        "pixels asked for too early",
        *("conv_mma", "loaderB.begin(shared + i", "loaderA.begin(shared + i", _COPIED),
    ),
    Fault(
        "a computed operand taken for a constant",
        *("gemm_mma", "Fragments, Problem::b_constant>", "Fragments, true>", _COPIED),
    ),
    Fault(
        "a warp waits for the block, without a barrier",
        *(
            "conv_simt",
            _WAIT_FOR_A,
            "    if (threadIdx.x < 32)\n        waitIfEarly<Shape>();\n",
            _TOUCHED,
        ),
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.template}: {f.name}")
def test_a_planted_fault_is_seen(fault: Fault, checking_execution: Any) -> None:
    cases = [case for case in CASES if case.template == fault.template]
    case = cases[-1] if "computed" in fault.name else cases[0]
    assert run(case, checking_execution, Faulty(fault), 0).shape == case.output
    with pytest.raises(EmulatorError, match=fault.message):
        run(case, checking_execution, Faulty(fault), 1)


def test_a_kernel_that_only_writes_waits_too(checking_execution: Any) -> None:
    """What it overwrites may still be read two kernels in front."""
    (case,) = [case for case in CASES if case.template == "elementwise"]
    filled = replace(case.problem, expression=Scalar(2.0), inputs=())
    assert isinstance(filled, Elementwise)
    only = replace(case, problem=filled, inputs=())
    assert (run(only, checking_execution, TEMPLATE_OF["elementwise"], 1) == 2).all()
    with pytest.raises(EmulatorError, match=_TOUCHED):
        run(
            only,
            checking_execution,
            Faulty(Fault("no wait", "elementwise", _START, "", _TOUCHED)),
            1,
        )


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=_name)
def test_early_is_legal_where_the_target_has_it(case: Case) -> None:
    template, problem = TEMPLATE_OF[case.template], case.problem
    assert set(template.space(problem, H200)[1]["early"]) == {1}
    assert set(template.space(problem, A100)[1]["early"]) == {0}
    for early in (0, 1):
        assert template.why_illegal(problem, schedule(case, early), H200) is None
    reason = template.why_illegal(problem, schedule(case, 1), A100)
    assert reason == f"{A100.name} cannot launch kernels early (early=1)"
    assert template.why_illegal(problem, schedule(case, 0), A100) is None
    wrong = schedule(case, 2)
    assert template.why_illegal(problem, wrong, H200) == "early is 0 or 1 (early=2)"
    (source,) = template.instantiate(problem, wrong)
    with pytest.raises(NvrtcError, match="early is 0 or 1"):
        load_nvrtc().compile(source, H200.arch)


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=_name)
def test_the_models_know_what_is_launched_early(case: Case) -> None:
    template = TEMPLATE_OF[case.template]
    for early in (0, 1):
        work = template.work(case.problem, schedule(case, early).columns(), H200)
        assert np.array_equal(work.early, [bool(early)])
