"""Early launch in the templates: the same numbers, nothing touched before the wait, and who may ask for it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.faults.planter import Fault, change, drop, move, plant, put
from support.launches.early_kernels import CASES, Case, operands, schedule

from wpk.build import load_nvrtc
from wpk.emulator import EmulatorError
from wpk.errors import CompileError
from wpk.expression import Scalar
from wpk.launch import EARLY_LAUNCH
from wpk.problems import Elementwise
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target

H200, A100 = find_target("h200"), find_target("a100")
_TOUCHED = "touched before waitForPrevious"
_EITHER = "(touched|copied) before waitForPrevious"
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
WAIT = "previous_awaited"
NO_WAIT = Fault("no wait", drop(WAIT), _TOUCHED)
NO_WAIT_BEFORE_COPIES = Fault("no wait", drop(WAIT), _COPIED)
NO_WAIT_AT_ALL = Fault("no wait", drop(WAIT), _EITHER)
FAULTS: list[tuple[str, Fault]] = [
    *((name, NO_WAIT) for name in STREAMING),
    *(
        (
            name,
            Fault(
                "threads without work do not wait", move("idle_threads_end", before=WAIT), _ENDED
            ),
        )
        for name in ("pooling", "pad", "resize", "gather")
    ),
    ("pooling", Fault("released, but not waited", put(WAIT, "releaseNext();"), _TOUCHED)),
    ("depthwise", NO_WAIT),
    ("depthwise_rows", Fault("no wait", drop(WAIT), _ENDED)),
    (
        "depthwise",
        Fault("pixels taken for weights", change("weights_loaded", "at[1]", "at[0]"), _TOUCHED),
    ),
    ("elementwise_tiled", NO_WAIT),
    ("elementwise_tiled", Fault("filled too early", move("tiles_filled", before=WAIT), _TOUCHED)),
    ("attention_simt", NO_WAIT),
    ("attention_mma", NO_WAIT_BEFORE_COPIES),
    ("attention_mma", Fault("asked for too early", move("queries_begun", before=WAIT), _COPIED)),
    ("attention_wgmma", Fault("no wait", drop(WAIT), _ENDED)),
    *(
        (name, fault)
        for name in ("conv_simt", "gemm_simt")
        for fault in (
            NO_WAIT,
            Fault("pixels asked for too early", move("first_tile_begun", before=WAIT), _TOUCHED),
        )
    ),
    (
        "conv_simt",
        Fault(
            "a warp waits for the block, without a barrier",
            put(WAIT, "if (threadIdx.x < 32)\n waitIfEarly<Shape>();"),
            _TOUCHED,
        ),
    ),
    (
        "gemm_simt",
        Fault(
            "a computed operand taken for a constant",
            change("constant_b", "Problem::b_constant", "true"),
            _TOUCHED,
        ),
    ),
    ("gemm_skinny", NO_WAIT),
    ("gemm_skinny", Fault("rows read too early", move("rows_begun", before=WAIT), _TOUCHED)),
    (
        "gemm_skinny",
        Fault(
            "a computed operand taken for a constant",
            change("constant_b", "Problem::b_constant", "true"),
            _TOUCHED,
        ),
    ),
    ("conv_patch", NO_WAIT),
    ("conv_grouped", NO_WAIT_BEFORE_COPIES),
    *((name, NO_WAIT_AT_ALL) for name in ("conv_mma", "gemm_mma")),
    (
        "conv_mma",
        Fault(
            "pixels asked for too early", change("constants_begun", "loaderB", "loaderA"), _COPIED
        ),
    ),
    (
        "gemm_mma",
        Fault(
            "a computed operand taken for a constant",
            change("constant_b", "Problem::b_constant", "true"),
            _COPIED,
        ),
    ),
]


@pytest.mark.parametrize(("name", "fault"), FAULTS, ids=[f"{t}: {f.name}" for t, f in FAULTS])
def test_a_planted_fault_is_seen(name: str, fault: Fault, checking_execution: Any) -> None:
    cases = [case for case in CASES if case.template == name]
    case = cases[-1] if "computed" in fault.name else cases[0]
    faulty = plant(TEMPLATE_OF[name], fault)
    assert run(case, checking_execution, faulty, 0).shape == case.output
    with pytest.raises(EmulatorError, match=fault.message):
        run(case, checking_execution, faulty, 1)


def test_a_kernel_that_only_writes_waits_too(checking_execution: Any) -> None:
    """What it overwrites may still be read two kernels in front."""
    (case,) = [case for case in CASES if case.template == "elementwise"]
    filled = replace(case.problem, expression=Scalar(2.0), inputs=())
    assert isinstance(filled, Elementwise)
    only = replace(case, problem=filled, inputs=())
    assert (run(only, checking_execution, TEMPLATE_OF["elementwise"], 1) == 2).all()
    with pytest.raises(EmulatorError, match=_TOUCHED):
        run(only, checking_execution, plant(TEMPLATE_OF["elementwise"], NO_WAIT), 1)


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
    with pytest.raises(CompileError, match="early is 0 or 1"):
        load_nvrtc().compile(source, H200.arch)


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=_name)
def test_the_models_know_what_is_launched_early(case: Case) -> None:
    template = TEMPLATE_OF[case.template]
    for early in (0, 1):
        work = template.work(case.problem, schedule(case, early).columns(), H200)
        assert np.array_equal(work.early, [bool(early)])
