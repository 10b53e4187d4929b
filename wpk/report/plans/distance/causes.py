"""General causes of an operator's distance from its bound, told from its problem and its kernel.

Each of them is a fact that can be read off: sizes of the problem, blocks and tiles of the schedule, refusals
of templates, resources that the compiler reported, and how the choice was made.
"""

from collections.abc import Callable, Iterator

import numpy as np

from wpk.candidate import GENERATED, Kind
from wpk.performance import l2_seconds, tensor_peak
from wpk.problems.signs import TIMES
from wpk.report.plans.distance.subject import Subject
from wpk.schedules import TEMPLATE_OF

UNKNOWN = "no general cause is known"
"""Said where nothing else can be."""

_PADDED = 1.5
"""Products computed by those that there are, above which padding of tiles is a cause."""

_MOVED = 2.0
"""Bytes moved by those that there are, above which moving them is a cause if it takes `_PART` of the time."""

_PART = 1 / 3
_LONG = 8
"""Steps of a block after each other that are worth sharing among several blocks."""

_FEW_TRIALS = 3
_SECTOR = 32
"""Bytes that global memory moves at least: neighbours as far apart share none."""


def causes_of(subject: Subject) -> tuple[str, ...]:
    """Return the causes that apply, those that no schedule can change first."""
    maker = subject.step.candidate.maker
    if maker.kind is Kind.RUNTIME:
        return (f"no kernel computes it: {maker.name} does, in the machine's memory",)
    if maker.kind is Kind.CONTROL:
        return ("the host looks at its condition and runs the engines of its bodies",)
    found = (cause for causes in _CAUSES for cause in causes(subject))
    return tuple(found) or (UNKNOWN,)


def _of_sizes(subject: Subject) -> Iterator[str]:
    yield from subject.step.operator.problem.peculiarities()


def _of_ordinary_cores(subject: Subject) -> Iterator[str]:
    """Products that tensor cores could do, and why they do not."""
    precision = subject.step.operator.problem.matrix_precision
    template = TEMPLATE_OF.get(subject.step.candidate.maker.name)
    if precision is None or subject.target is None or template is None or template.on_tensor_cores:
        return
    peak = tensor_peak(precision, subject.target)
    if peak is None or peak <= subject.target.peak_ordinary:
        return
    funnels = subject.step.evidence.funnels
    cores = [each for each in funnels if _on_tensor_cores(each.template)]
    refused = [f"{each.template}: {each.refusal}" for each in cores if each.refusal]
    if len(refused) < len(cores):
        said = "by the models" if subject.step.evidence.measurement is None else "as measured"
        yield f"ordinary cores compute it faster than tensor cores, {said}"
    elif refused:
        yield f"no template of the tensor cores takes it ({'; '.join(refused)})"


def _on_tensor_cores(template: str) -> bool:
    return template in TEMPLATE_OF and TEMPLATE_OF[template].on_tensor_cores


def _of_padding(subject: Subject) -> Iterator[str]:
    """Products of tiles that the problem does not have."""
    work, needed = subject.work, subject.step.operator.problem.traffic().products
    if work is None or needed <= 0:
        return
    times = float(work.blocks[0] * work.block_flops[0]) / needed
    if times >= _PADDED:
        yield f"its tiles compute {times:.1f} {TIMES} the products that there are"


def _of_few_blocks(subject: Subject) -> Iterator[str]:
    """Multiprocessors without a block, and reductions that would give them one."""
    blocks, target, work = subject.blocks, subject.target, subject.work
    if blocks is None or target is None or blocks >= target.sm_count:
        return
    words = f"{blocks} blocks for {target.sm_count} SMs"
    if work is not None and work.steps[0] >= _LONG and not np.any(work.combined_bytes):
        words += f", and their {work.steps[0]:.0f} steps are not shared: the reduction is not split"
    yield words


def _of_movement(subject: Subject) -> Iterator[str]:
    """Bytes that blocks move again, or that lie between those that they use."""
    work, target = subject.work, subject.target
    if work is None or target is None:
        return
    problem = subject.step.operator.problem
    read = float(work.block_transactions[0]) * target.transaction_bytes
    moved = float(work.blocks[0]) * (read + float(work.store_bytes[0]))
    times = moved / max(problem.traffic().bytes, 1)
    if times >= _MOVED and l2_seconds(work, target)[0] >= _PART * subject.seconds:
        again = "every tile reads its operands anew"
        if problem.matrix_precision is None:
            again = "elements are read again, or lie apart"
        yield f"its blocks move {times:.1f} {TIMES} the bytes that there are: {again}"


def _of_strides(subject: Subject) -> Iterator[str]:
    """Inputs whose neighbours in memory are no neighbours in the output, where no tile turns them."""
    work, problem = subject.work, subject.step.operator.problem
    if work is None or problem.matrix_precision is not None or float(work.shared_bytes[0]):
        return
    inputs, output = problem.accesses()
    fastest = [axis for axis, stride in enumerate(output.tensor.strides) if stride == 1]
    for access in inputs:
        if access is None or not fastest or len(access.axes) != len(output.axes):
            continue
        tensor = access.tensor
        step = abs(tensor.strides[fastest[-1]]) * tensor.dtype.bytes
        if step >= _SECTOR and access.distinct_bytes >= output.distinct_bytes // 2:
            yield f"copies are not coalesced: what it reads lies {step} bytes apart"
            return


def _of_launches(subject: Subject) -> Iterator[str]:
    count = len(subject.step.launches)
    if count > 1:
        yield f"{count} launches, one after another"


def _of_spills(subject: Subject) -> Iterator[str]:
    kernels = (subject.plan.kernels[launch.kernel].resources for launch in subject.step.launches)
    spilled = max((each.spill_store_bytes + each.spill_load_bytes for each in kernels), default=0)
    if spilled:
        yield f"its threads spill {spilled} bytes of registers each"


def _of_the_choice(subject: Subject) -> Iterator[str]:
    """How little was tried, where others were measured."""
    evidence = subject.step.evidence
    legal = sum(funnel.legal for funnel in evidence.funnels)
    if evidence.measurement is None:
        if any(each.evidence.measurement is not None for each in subject.plan.steps):
            yield f"chosen without measuring, out of {legal:,} legal schedules"
        return
    tallies = [each for each in evidence.measurement.tallies if each.family == GENERATED]
    tried = sum(sum(each.statuses.values()) for each in tallies)
    if subject.is_generated and tried <= _FEW_TRIALS and legal > 2 * _FEW_TRIALS:
        yield f"only {tried} of {legal:,} legal schedules {'was' if tried == 1 else 'were'} tried"


_CAUSES: tuple[Callable[[Subject], Iterator[str]], ...] = (
    _of_sizes,
    _of_ordinary_cores,
    _of_padding,
    _of_few_blocks,
    _of_movement,
    _of_strides,
    _of_launches,
    _of_spills,
    _of_the_choice,
)
