"""Operators far from their bounds are named, with general causes; those near them are not."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from subjects.problems import convolution, matmul
from support.problems.attentions import attention

from wpk.candidate import Candidate, Kind, Maker
from wpk.cli.bench import _tables
from wpk.device import Timing
from wpk.dtypes import DType
from wpk.expression import Operand, apply
from wpk.extent import Extent
from wpk.performance import bound
from wpk.plan.measurement import Contestant, Measurement, Tally
from wpk.plan.plan import Evidence, Plan, PlanBundle, Step
from wpk.problems import Elementwise, Matmul, Problem, Tensor
from wpk.problems.signs import TIMES
from wpk.report.blocks import plain_text
from wpk.report.plans.distance import FAR, distant_lines, distant_operators, launch_floor
from wpk.report.plans.distance.causes import UNKNOWN
from wpk.report.plans.gather import gather
from wpk.report.plans.html import html_page
from wpk.report.plans.markdown import markdown_text
from wpk.report.plans.terminal import short_summary, summary
from wpk.schedules import TEMPLATES
from wpk.search.models.static_search import finalist_of, shortlist_all
from wpk.targets.registry import find_target
from wpk.trial import Regime

TARGET = find_target("h200")
Causes = Callable[..., tuple[str, ...]]


def products(count: int, rows: int) -> Matmul:
    """So many products of few columns, each of its own matrices."""
    one = matmul(rows, 64, 64, constant=False)
    strides = dict.fromkeys(("a", "y"), (0, rows * 64, 64, 1)) | {"b": (0, 64 * 64, 64, 1)}
    tensors = {name: Tensor(DType.FP16, each) for name, each in strides.items()}
    return replace(one, batch=(Extent(1), count), **tensors)


def step_of(plan: Plan, problem: Problem, template: str = "") -> tuple[Step, dict[str, Any]]:
    """A step that computes a problem as the models choose, and the kernels that it needs."""
    shortlists = shortlist_all(problem, TEMPLATES, TARGET)
    chosen = shortlists.finalists(count=1)[0]
    if template:
        of = next(each for each in shortlists.templates if each.template.name == template)
        parameters = of.ranked[0].schedule.parameters()
        chosen = finalist_of(problem, Candidate(of.template.maker, parameters), TARGET)
    first = plan.steps[0]
    kernel = plan.kernels[first.launches[0].kernel]
    kernels = {launch.kernel: replace(kernel, digest=launch.kernel) for launch in chosen.launches}
    evidence = Evidence(
        bound_seconds=bound(problem, TARGET).seconds,
        estimate_seconds=chosen.prediction.estimate,
        funnels=shortlists.funnels,
    )
    operator = replace(first.operator, problem=problem)
    step = replace(
        first,
        operator=operator,
        candidate=chosen.candidate,
        launches=chosen.launches,
        evidence=evidence,
    )
    return step, kernels


@pytest.fixture
def causes(bundle: PlanBundle) -> Causes:
    """The causes of a problem's distance where its kernel takes as many times what it should."""

    def of(problem: Problem, *, times: float = 2 * FAR, template: str = "", **changed: Any) -> Any:
        step, kernels = step_of(bundle.plan, problem, template)
        step = replace(step, evidence=replace(step.evidence, **changed))
        plan = replace(bundle.plan, steps=(step,), kernels=kernels)
        seconds = times * (step.evidence.bound_seconds + launch_floor(plan))
        found = distant_operators(plan, [seconds])
        assert len(found) == (times > FAR)
        return found[0].causes if found else ()

    return of


def test_what_is_near_its_bound_and_a_launch_is_not_named(causes: Causes) -> None:
    for problem in (matmul(56, 64, 64), convolution(64, 64, 56)):
        assert causes(problem, times=FAR - 0.1) == ()
        assert causes(problem, times=FAR + 0.1)


def test_a_short_operator_is_not_named_beside_a_long_one(bundle: PlanBundle) -> None:
    plan = bundle.plan
    seconds = [1e-3, *(12e-6 for _ in plan.steps[1:])]
    names = {name for each in distant_operators(plan, seconds) for name in each.names}
    assert names == {plan.steps[0].operator.name}


def test_equal_operators_are_named_together_and_share_what_is_noticeable(
    bundle: PlanBundle,
) -> None:
    step = bundle.plan.steps[0]
    plan = replace(bundle.plan, steps=(step,) * 60)
    (found,) = distant_operators(plan, [1e-3] * 60)
    assert len(found.names) == 60
    assert found.share == pytest.approx(1)
    assert f"{step.operator.name} and 59 equal to it, 100%" in found.sentence


def test_few_rows_a_product_are_a_cause(causes: Causes) -> None:
    assert "56 products of 56 rows each" in causes(products(56, 56))
    assert not any("products of" in cause for cause in causes(products(56, 256)))


def test_the_templates_say_why_no_tensor_core_takes_an_attention(causes: Causes) -> None:
    found = causes(attention(196, 196, 35, batch=(1, 4)))
    assert "35 elements a head, no multiple of 8" in found
    (cores,) = (cause for cause in found if "tensor cores" in cause)
    assert "attention_mma: q has a stride of 70 bytes; copies need multiples of 4" in cores
    assert not any("tensor cores" in cause for cause in causes(attention(196, 196, 32)))


def test_groups_of_few_channels_are_a_cause(causes: Causes) -> None:
    grouped = convolution(128, 128, 56, groups=32)
    found = causes(grouped, template="conv_mma")
    assert "32 groups of 4 channels each" in found
    assert any("products that there are" in cause for cause in found)
    plain = causes(convolution(128, 128, 56), template="conv_mma")
    assert not any("groups" in cause or "products that" in cause for cause in plain)


def test_too_few_blocks_are_a_cause_and_so_is_a_reduction_that_is_not_split(causes: Causes) -> None:
    found = causes(matmul(1, 64, 65536), template="gemm_simt")
    assert any("blocks for 132 SMs" in cause for cause in found)
    assert not any("SMs" in cause for cause in causes(matmul(4096, 4096, 256)))


def test_copies_that_are_not_coalesced_are_a_cause(causes: Causes) -> None:
    strided = Tensor(DType.FP32, (64, 4096, 1))
    across = Tensor(DType.FP32, (64, 1, 4096))
    for template, told in (("elementwise", True), ("elementwise_tiled", False)):
        turned = Elementwise(Extent(1), (1, 64, 4096), apply("Exp", Operand(0)), (across,), strided)
        found = causes(turned, template=template)
        assert any("not coalesced" in cause for cause in found) == told


def measured(candidate: Candidate, tried: int) -> Measurement:
    """So many schedules were tried of which this one won."""
    chosen = Contestant(candidate, 1e-4, 1e-4, 1e-4, 9, side_by_side=True)
    return Measurement(chosen, (), "warm", (Tally("generated", {"ok": tried}),), 0, "out of budget")


def test_one_trial_of_many_schedules_is_a_cause(bundle: PlanBundle, causes: Causes) -> None:
    problem = matmul(4096, 4096, 256)
    candidate = step_of(bundle.plan, problem)[0].candidate
    found = causes(problem, measurement=measured(candidate, 1))
    assert any(cause.startswith("only 1 of ") and cause.endswith("was tried") for cause in found)
    assert not any(
        "tried" in cause for cause in causes(problem, measurement=measured(candidate, 40))
    )


def test_who_was_not_measured_beside_others_is_told(bundle: PlanBundle) -> None:
    first, *others = bundle.plan.steps
    evidence = replace(first.evidence, measurement=measured(first.candidate, 40))
    plan = replace(bundle.plan, steps=(replace(first, evidence=evidence), *others))
    unmeasured = distant_operators(plan, [1e-6, 1e-3, *(1e-6 for _ in others[1:])])
    assert any("chosen without measuring" in cause for cause in unmeasured[0].causes)
    (first_alone,) = distant_operators(plan, [1e-3, *(1e-6 for _ in others)])
    assert not any("without measuring" in cause for cause in first_alone.causes)


@pytest.mark.parametrize(
    ("kind", "told"),
    [(Kind.RUNTIME, "no kernel computes it"), (Kind.CONTROL, "the host looks at its condition")],
)
def test_what_the_host_does_is_the_only_cause(bundle: PlanBundle, kind: Kind, told: str) -> None:
    first, *others = bundle.plan.steps
    host = replace(first, candidate=Candidate(Maker("someone", "1", kind), ()), launches=())
    plan = replace(bundle.plan, steps=(host, *others))
    (found,) = distant_operators(plan, [1e-3, *(1e-6 for _ in others)])
    (cause,) = found.causes
    assert told in cause


def test_spilled_registers_are_a_cause(bundle: PlanBundle) -> None:
    plan, first = bundle.plan, bundle.plan.steps[0]
    digest = first.launches[0].kernel
    spilling = replace(plan.kernels[digest].resources, spill_store_bytes=24, spill_load_bytes=8)
    kernels = {**plan.kernels, digest: replace(plan.kernels[digest], resources=spilling)}
    seconds = [1e-3, *(1e-6 for _ in plan.steps[1:])]
    (found,) = distant_operators(replace(plan, kernels=kernels), seconds)
    assert "its threads spill 32 bytes of registers each" in found.causes
    (clean,) = distant_operators(plan, seconds)
    assert not any("spill" in cause for cause in clean.causes)


def test_a_gpu_that_only_a_file_describes_has_causes_of_sizes_only(bundle: PlanBundle) -> None:
    step, kernels = step_of(bundle.plan, products(56, 56))
    plan = replace(bundle.plan, steps=(step,), kernels=kernels, target="described elsewhere")
    (found,) = distant_operators(plan, [1e-3])
    assert found.causes == ("56 products of 56 rows each", "64 columns")


def test_where_nothing_explains_it_that_is_said(causes: Causes) -> None:
    assert causes(matmul(4096, 4096, 4096)) == (UNKNOWN,)


def test_every_form_of_the_report_names_them(bundle: PlanBundle) -> None:
    step, kernels = step_of(bundle.plan, products(56, 56))
    evidence = replace(step.evidence, estimate_seconds=1e-3)
    own = bundle.plan.steps[0]
    slow = replace(own, operator=step.operator, launches=step.launches, evidence=evidence)
    slow = replace(slow, candidate=step.candidate)
    kernels = {**bundle.plan.kernels, **kernels}
    plan = replace(bundle.plan, steps=(slow, *bundle.plan.steps[1:]), kernels=kernels)
    facts = gather(plan)
    texts = [plain_text(*summary(plan)), plain_text(*short_summary(plan)), markdown_text(facts)]
    for text in (*texts, html_page(facts)):
        assert f"1 operator takes more than {FAR:.0f} {TIMES} its bound and a launch" in text
        assert "56 products of 56 rows each" in text
    assert "far  " in texts[0]
    quiet = plain_text(*short_summary(bundle.plan))
    assert "far        nothing: no operator with 2% of the time" in quiet


def test_lines_of_many_operators_end_with_where_the_others_are(bundle: PlanBundle) -> None:
    plan = bundle.plan
    found = distant_operators(plan, [1e-3 for _ in plan.steps])
    lines = distant_lines([each for each in found for _ in range(4)], 1.2)
    assert len(lines) == 8
    assert lines[-1][1].startswith("and ")


def test_templates_say_themselves_whether_they_use_tensor_cores(bundle: PlanBundle) -> None:
    wanted = (convolution(64), matmul(256, 256, 256), attention(64, 64, 32))
    for problem in wanted:
        for shortlist in shortlist_all(problem, TEMPLATES, TARGET).templates:
            template, schedule = shortlist.template, shortlist.ranked[0].schedule
            work = template.work(problem, schedule.columns(), TARGET)
            assert template.on_tensor_cores == (work.unit is not None), template.name


def test_bench_names_them_by_the_times_that_it_has_just_measured(bundle: PlanBundle) -> None:
    plan, slow = bundle.plan, bundle.plan.steps[1].operator.name
    alone = {step.operator.name: Timing((1e-6,) * 11, Regime.WARM) for step in plan.steps}
    alone[slow] = Timing((1e-2,) * 11, Regime.WARM)
    whole = Timing((2e-3,) * 11, Regime.WARM)
    times = SimpleNamespace(
        engine=whole, host=(2e-3,) * 5, operators=alone, turns={}, memory="1 MiB"
    )
    found: Any = SimpleNamespace(plan=plan, times=times, device="H200")
    text = plain_text(*_tables(found))
    assert f"far  1 operator takes more than {FAR:.0f} {TIMES} its bound and a launch" in text
    assert f"far  {slow}, 100%: " in text
