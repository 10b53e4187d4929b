"""cuDNN's attention, softmax, reductions and element-wise work against float64; refusals are recorded.

What cuDNN refuses is skipped with its words: which graphs its run-time compiler takes is not ours.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from subjects.operands import Operands, Workspace, capture
from support.numbers.reductions import reduction_case
from support.problems.attentions import attention
from support.problems.cudnn_candidates import make_ready
from support.problems.cudnn_problems import attentions, elementwise, reductions, softmaxes

from wpk.device import CudaDevice
from wpk.dtypes import ASKED, DType, Precision
from wpk.libraries import random_case
from wpk.libraries.attention_reference import attend
from wpk.libraries.cudnn import Cudnn, CudnnCandidate
from wpk.libraries.cudnn_problems import why_not
from wpk.libraries.reference import RandomCase, worst_error
from wpk.problems import Attention, Problem

pytestmark = pytest.mark.gpu

MOST, TRIED = 2, 8
"""Proposals that are run of each problem, and built until so many can be: that takes a second each."""

Record = Callable[[str, object], None]
ROWS = {
    f"{name}, {dtype}": problem
    for dtype in (DType.FP16, DType.BF16, DType.FP32)
    for name, problem in (
        softmaxes(dtype)
        if dtype is DType.BF16
        else softmaxes(dtype) | reductions(dtype) | elementwise(dtype)
    ).items()
}
ATTENTIONS = {
    f"{name}, {precision}": problem
    for precision in ASKED
    for name, problem in attentions(precision).items()
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_computes_attention(cuda: CudaDevice, library: Cudnn, name: str, record: Record) -> None:
    problem = ATTENTIONS[name]
    case = random_case(problem, seed=0)
    errors = _errors(cuda, problem, case, _ready(library, problem))
    record(f"cudnn attention {name}", errors)
    if problem.precision is Precision.FP32 and min(errors.values()) > 1.0:
        pytest.skip(f"no engine is as precise as fp32, which checks refuse: {errors}")
    assert min(errors.values()) <= 1.0, errors


@pytest.mark.parametrize("name", ROWS)
def test_computes_rows(cuda: CudaDevice, library: Cudnn, name: str, record: Record) -> None:
    problem = ROWS[name]
    case = reduction_case(problem, seed=0)
    errors = _errors(cuda, problem, case, _ready(library, problem))
    record(f"cudnn {name}", errors)
    assert min(errors.values()) <= 1.0, errors


def test_another_scale_would_be_noticed(cuda: CudaDevice, library: Cudnn) -> None:
    """A negative control: the same engines, asked for a scale that is 5 % off."""
    problem = attentions(Precision.FP16)["scaled"]
    case = random_case(problem, seed=0)
    other = attention(33, 57, 64, scale=0.125 * 1.05)
    assert min(_errors(cuda, other, case, _ready(library, other)).values()) > 1.0
    assert worst_error(case.output + 1.5 * case.allowed, case) > 1.0


def test_a_mask_of_large_negative_numbers_hides_keys(cuda: CudaDevice, library: Cudnn) -> None:
    problem = attentions(Precision.FP16)["biased by a key"]
    case = random_case(problem, seed=3)
    *factors, bias = case.operands
    bias[..., 40:] = -1e4  # as models write masks; what is behind them must not matter
    masked = _with(problem, case.operands)
    values = np.array(factors[2])
    values[:, :, 40:] = 60000.0
    loud = replace(masked, operands=(*factors[:2], values, bias))
    errors = _errors(cuda, problem, loud, _ready(library, problem))
    assert min(errors.values()) <= 1.0, errors


def test_rows_of_nothing_but_minus_infinity_are_recorded(
    cuda: CudaDevice, library: Cudnn, record: Record
) -> None:
    """Why attention whose empty rows are 0 is refused: what cuDNN makes of them is not promised."""
    problem = attentions(Precision.FP16)["biased by a key"]
    assert why_not(replace(problem, empty_rows_are_zero=True)) is not None
    case = random_case(problem, seed=4)
    bias = np.full_like(case.operands[3], -np.inf)
    empty = replace(case, operands=(*case.operands[:3], bias))
    found = {}
    with Operands(cuda, problem, empty) as operands:
        for candidate in _ready(library, problem):
            result = np.asarray(operands.run(candidate), np.float64)
            found[candidate.name] = "nan" if np.isnan(result).all() else float(np.nanmax(result))
    record("cudnn attention, empty rows", found)


def test_attention_is_captured(cuda: CudaDevice, library: Cudnn) -> None:
    problem = attentions(Precision.BF16)["scaled"]
    candidate = _ready(library, problem)[0]
    case = random_case(problem, seed=1)
    with Operands(cuda, problem, case) as operands, Workspace(cuda, [candidate]) as workspace:
        replay = capture(cuda, candidate, operands.pointers(candidate), workspace, 2)
        operands.poison()
        replay.replay()
        cuda.synchronize()
        assert worst_error(operands.result(), case) <= 1.0


END = """
from support.problems.cudnn_problems import attentions
from wpk.dtypes import Precision
from wpk.execution import BoundCall, LibraryImage
from wpk.backends import open_gpu
from wpk.libraries import CudaLibraries
device = open_gpu()
problem = attentions(Precision.FP16)["scaled"]
offer = CudaLibraries().offer("cuDNN", problem, device)
assert offer.configurations, offer.refusals
graphs = []
for configuration in offer.configurations[:6]:
    image = LibraryImage(offer.library, offer.version, problem, configuration)
    try:
        device.load(image)
    except Exception as error:
        kept = error  # with its traceback
        continue
    pointers = tuple(device.allocate(1 << 20) for _ in range(4))
    graphs.append(device.capture(
        [BoundCall(image.digest, pointers, device.allocate(1 << 26), 1 << 26)]
    ))
    graphs[-1].replay()
assert graphs
print("ready")
{end}
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "device.close()", "del device"])
def test_a_process_with_plans_ends_without_a_crash(end: str) -> None:
    text = END.format(end=end)
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{text}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "AssertionError" in done.stderr:
        pytest.skip(done.stderr.strip().splitlines()[-1])
    assert done.stdout.split() == ["ready"], done.stderr
    assert done.returncode == (3 if "SystemExit" in end else 0), done.stderr


def _ready(library: Cudnn, problem: Problem) -> list[CudnnCandidate]:
    """Candidates that can run; where there are none the test is skipped, in cuDNN's words."""
    ready, reasons = make_ready(library, problem, MOST, TRIED)
    if not ready:
        pytest.skip(f"cuDNN {library.version}: {'; '.join(dict.fromkeys(reasons)) or 'no plans'}")
    return ready


def _errors(
    cuda: CudaDevice, problem: Problem, case: RandomCase, ready: list[CudnnCandidate]
) -> dict[str, float]:
    with Operands(cuda, problem, case) as operands:
        return {each.name: worst_error(operands.run(each), case) for each in ready}


def _with(problem: Attention, operands: tuple[Any, ...]) -> RandomCase:
    q, k, v, *others = (each.astype(np.float64) for each in operands)
    return RandomCase(operands, *attend(problem, q, k, v, others))
