"""Facts of a plan: sums, where nodes went, what was really used."""

from dataclasses import replace

import pytest
from support.plans.candidates import kernel

from wpk.plan.plan import Check, Outcome, PlanBundle
from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.gather import gather
from wpk.report.plans.precision import PrecisionFacts, precision_sentences


def test_sums_are_those_of_the_operators(bundle: PlanBundle, facts: ReportFacts) -> None:
    steps = bundle.plan.steps
    assert facts.launches == sum(len(step.launches) for step in steps)
    total = sum(step.evidence.estimate_seconds for step in steps)
    assert facts.estimate_us == pytest.approx(total * 1e6)
    assert sum(operator.share for operator in facts.operators) == pytest.approx(1.0)
    assert facts.bound_us == pytest.approx(facts.estimate_us / 4)


def test_every_node_of_the_model_is_accounted_for(facts: ReportFacts) -> None:
    nodes = {node.name: node for node in facts.nodes}
    stem, branch = (
        next(n for n, o in enumerate(facts.operators) if name in o.nodes)
        for name in ("stem", "branch")
    )
    assert nodes["stem"].operators == (stem,)
    assert nodes["stem_relu"].operators == (stem,)
    assert nodes["sum"].operators == nodes["sum_relu"].operators == (branch,)
    assert all(node.operators or node.near >= 0 for node in facts.nodes)


def test_a_removed_node_stands_where_its_work_went(facts: ReportFacts) -> None:
    nodes = {node.name: node for node in facts.nodes}
    assert nodes["norm"].operators == ()  # folded into the convolution before it
    assert facts.operators[nodes["norm"].near].nodes.count("stem_relu") == 1
    assert nodes["nothing"].operators == ()
    assert facts.operators[nodes["nothing"].near].kind == "reduction"


def test_a_removed_node_that_nothing_reads_stands_nowhere(hostile: PlanBundle) -> None:
    (stray,) = (node for node in gather(hostile).nodes if "onerror" in node.operator)
    assert (stray.operators, stray.near) == ((), -1)


def test_operators_know_whom_they_read(facts: ReportFacts) -> None:
    branch = next(o for o in facts.operators if "branch" in o.nodes)
    assert [facts.operators[number].nodes.count("stem") for number in branch.reads] == [1]
    assert facts.operators[0].reads == ()
    for number, operator in enumerate(facts.operators[1:], start=1):
        assert operator.reads
        assert max(operator.reads) < number


def test_one_digest_stands_for_cubin_and_cpu(facts: ReportFacts) -> None:
    assert facts.cpu_refusal == ""
    for operator in facts.operators:
        for launch in operator.launches:
            assert len(launch.cubin_source) == 64
            assert launch.cpu_source == launch.cubin_source


def test_a_plan_of_another_version_says_that_the_cpu_would_refuse_it(bundle: PlanBundle) -> None:
    first, *rest = bundle.plan.steps
    other = replace(
        first, candidate=kernel(first.candidate.maker.name, first.candidate.configuration, 99)
    )
    facts = gather(replace(bundle.plan, steps=(other, *rest)))
    assert "version" in facts.cpu_refusal
    assert facts.operators[0].launches[0].cpu_source == ""


def test_precision_is_read_from_the_machine_code(bundle: PlanBundle, facts: ReportFacts) -> None:
    assert len(facts.precision.on_tensor_cores) == 3
    assert facts.precision.on_ordinary_cores == ()
    plain = {d: replace(k, tensor_core_instructions={}) for d, k in bundle.plan.kernels.items()}
    used = gather(replace(bundle.plan, kernels=plain)).precision
    assert used.asked == "fp16"
    assert used.on_tensor_cores == ()
    assert used.on_ordinary_cores == facts.precision.on_tensor_cores
    assert precision_sentences(used)[-1].startswith("3 of 3 run on the ordinary cores: ")


def test_says_which_of_the_ordinary_are_depthwise() -> None:
    names = tuple(f"conv_{number}" for number in range(8))
    facts = PrecisionFacts(
        "fp16", {"fp16": 9}, {"hmma.f16": 4}, ("fc",), names, 5, ("gemm",), 0, 0, 0
    )
    assert precision_sentences(facts)[1:] == [
        (
            "1 of 10 convolutions and matrix products run on the tensor cores (hmma.f16); the "
            "instructions were counted in the machine code."
        ),
        (
            "8 of 10 run on the ordinary cores, 5 of them depthwise: "
            "conv_0, conv_1, conv_2, conv_3, conv_4, conv_5 and 2 more."
        ),
        ("1 of 10 are computed by a library, which chooses the cores within that precision: gemm."),
    ]


def test_says_how_strict_fp32_is_computed_on_tensor_cores() -> None:
    facts = PrecisionFacts("fp32", {"fp32": 3}, {"hmma.tf32": 24}, ("conv",), (), 0, (), 0, 0, 0)
    assert precision_sentences(facts)[-1].startswith("There each product of fp32 is three of tf32")
    single = PrecisionFacts("tf32", {"fp32": 3}, {"hmma.tf32": 8}, ("conv",), (), 0, (), 0, 0, 0)
    assert not any("three" in sentence for sentence in precision_sentences(single))


def test_blocks_lie_within_the_arena_and_never_over_each_other(facts: ReportFacts) -> None:
    blocks = facts.memory.blocks
    assert blocks
    for number, one in enumerate(blocks):
        assert one.offset + one.bytes <= facts.memory.arena_bytes
        for other in blocks[number + 1 :]:
            apart_in_time = one.last < other.first or other.last < one.first
            below = one.offset + one.bytes <= other.offset
            above = other.offset + other.bytes <= one.offset
            assert apart_in_time or below or above


def test_a_plan_is_right_only_if_everything_was_checked_and_conclusive(
    bundle: PlanBundle, facts: ReportFacts
) -> None:
    assert facts.verdict is Outcome.OK
    plan = bundle.plan
    assert gather(replace(plan, checks=())).verdict is None
    for outcome in Outcome:
        checks = (*plan.checks, Check("x", outcome, ""))
        assert gather(replace(plan, checks=checks)).verdict is outcome
    first, *rest = plan.steps
    unchecked = replace(first, evidence=replace(first.evidence, checks=()))
    assert gather(replace(plan, steps=(unchecked, *rest))).verdict is None


def test_operators_with_one_problem_share_its_funnels(bundle: PlanBundle) -> None:
    first = bundle.plan.steps[0]
    twin = replace(first, operator=replace(first.operator, name="twin"))
    facts = gather(replace(bundle.plan, steps=(*bundle.plan.steps, twin)))
    assert facts.problems[0].operators == (first.operator.name, "twin")
    assert facts.operators[-1].problem == 0
