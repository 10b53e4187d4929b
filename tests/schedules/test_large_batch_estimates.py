"""What the models say of problems at batch 32, beside kernels that were measured on an H100."""

from dataclasses import replace

import numpy as np
import pytest
from spaces.large_batch import LARGE_BATCH

from wpk.extent import Extent
from wpk.performance import bound, estimate, resident_blocks
from wpk.problems import Attention
from wpk.schedules import TEMPLATE_OF
from wpk.search.models.shortlist import shortlist
from wpk.targets import Target, find_target

WGMMA = TEMPLATE_OF["attention_wgmma"]
H100, H200 = find_target("h100"), find_target("h200")


def _heads(name: str, **changes: object) -> Attention:
    problem = LARGE_BATCH[name]
    assert isinstance(problem, Attention)
    return replace(problem, **changes)  # type: ignore[arg-type]


MEASURED = {
    "ViT, 32 images": (_heads("vit.attention_b32.fp16"), 24.4),
    "BERT, 32 sentences": (_heads("bert.attention_b32.fp16"), 8.95),
}
"""Microseconds of the fastest recorded schedule on an H200 (tests/replay/h200); an earlier build's best took 28.6 and 10.6 on an
H100."""


def _estimates(problem: Attention, target: Target) -> tuple[dict[str, np.ndarray], np.ndarray]:
    _, columns = WGMMA.space(problem, target)
    work = WGMMA.work(problem, columns, target)
    return columns, estimate(work, bound(problem, target), target)


@pytest.mark.parametrize("name", MEASURED)
def test_the_best_estimate_is_near_the_best_measured_kernel(name: str) -> None:
    problem, microseconds = MEASURED[name]
    _, seconds = _estimates(problem, H200)
    assert 1 / 1.1 < seconds.min() * 1e6 / microseconds < 1.05


def test_scores_of_one_step_leave_room_for_other_blocks() -> None:
    """The fastest kernel of BERT's attention has all 128 keys in one step, 93 registers, and four blocks an SM."""
    problem = _heads("bert.attention_b32.fp16")
    _, columns = WGMMA.space(problem, H200)
    resident = resident_blocks(WGMMA.work(problem, columns, H200), H200)
    alone = (columns["warpgroups"] == 1) & (columns["block_n"] == 128)
    assert resident[alone].tolist() == [4.0]
    two_steps = replace(problem, keys=129)
    _, columns = WGMMA.space(two_steps, H200)
    resident = resident_blocks(WGMMA.work(two_steps, columns, H200), H200)
    alone = (columns["warpgroups"] == 1) & (columns["block_n"] == 128)
    assert set(resident[alone].tolist()) == {2.0}


@pytest.mark.parametrize(("keys", "measured"), [(32, 1.065), (48, 1.457)])
def test_turns_cost_a_wait_and_with_48_keys_a_block(keys: int, measured: float) -> None:
    """Of ViT's heads with three stages, on an H200 (tests/replay/h200-beside): an SM holds one block of 48 keys in turns, or two."""
    columns, seconds = _estimates(_heads("vit.attention_b32.fp16"), H200)
    alike = (columns["warpgroups"] == 2) & (columns["block_n"] == keys) & (columns["stages"] == 3)
    plain, turns = (seconds[alike & (columns["pingpong"] == each)] for each in (0, 1))
    assert turns / plain == pytest.approx(measured, rel=0.04)


def test_a_kernel_at_batch_1_is_estimated_between_its_time_in_the_engine_and_alone() -> None:
    """Albert's attention, 12 heads of 384 tokens (benchmarks/results/h100-zoo.json)."""
    joined = _heads("bert.attention_b32.fp16")
    problem = replace(joined, batch=(Extent(1), 12), queries=384, keys=384)
    columns, seconds = _estimates(problem, H100)
    is_it = (columns["warpgroups"] == 1) & (columns["block_n"] == 128) & (columns["stages"] == 3)
    (row,) = np.flatnonzero(is_it & (columns["pingpong"] == 0))
    assert 4.89e-6 < seconds[row] < 5.95e-6


def test_steps_of_few_keys_pay_for_what_a_step_takes_whatever_it_multiplies() -> None:
    """A step of 32 keys is 248 instructions of a thread, one of 64 keys 363: more than half."""
    problem = _heads("vit.attention_b32.fp16")
    columns = {
        name: np.asarray(values)
        for name, values in {
            "warpgroups": (2, 2),
            "block_n": (32, 64),
            "stages": (3, 3),
            "pingpong": (0, 0),
            "early": (1, 1),
        }.items()
    }
    work = WGMMA.work(problem, columns, H100)
    few, many = (work.beside_cycles / work.steps).tolist()
    assert many / 2 < few < many


@pytest.mark.parametrize(
    ("name", "microseconds"),
    [("resnext.grouped_56_b32.fp16", 20.4), ("resnext.grouped_28_b32.fp16", 8.8)],
)
def test_grouped_convolutions_take_nearly_what_is_estimated(name: str, microseconds: float) -> None:
    problem, template = LARGE_BATCH[name], TEMPLATE_OF["conv_grouped"]
    least = bound(problem, H100)
    found = shortlist(problem, template, H100, least).least
    assert 0.95 < found * 1e6 / microseconds < 1.25


def test_turns_of_warpgroups_are_not_expected_to_help_a_gelu() -> None:
    """They did not: the best kernel of 4096 x 768 . 768 x 3072, 35.8 us, has none."""
    problem, template = LARGE_BATCH["bert.up_b32.fp16"], TEMPLATE_OF["gemm_wgmma"]
    ranked = shortlist(problem, template, H100, bound(problem, H100)).ranked
    turns = [dict(each.schedule.parameters())["pingpong"] == 1 for each in ranked]
    assert not any(turns[:5])
    assert any(turns)
    assert 0.9 < ranked[0].estimate / 36.7e-6 < 1.25
