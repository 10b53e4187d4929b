"""cuDNN computes the fused operators that it is asked for, and its wrong answers are noticed."""

from __future__ import annotations

import numpy as np
import pytest
from subjects.operands import Operands, Workspace, capture
from support.problems.cudnn_candidates import make_ready
from support.problems.fused_convolutions import BIAS, CONVOLUTIONS, RESIDUAL, fused_convolution

from wpk.device import CudaDevice
from wpk.dtypes import ASKED, DType, Precision
from wpk.errors import LaunchError
from wpk.expression import Acc, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.libraries import random_case
from wpk.libraries.cudnn import Cudnn, CudnnCandidate
from wpk.libraries.reference import RandomCase, worst_error
from wpk.operators import express
from wpk.problems import Epilogue, Matmul, Normalisation, Problem, Tensor
from wpk.problems.normalisation import NormKind

pytestmark = pytest.mark.gpu

MOST = 6
"""Proposals that a test builds of each problem: compiling takes a second each."""


def _matmul(precision: Precision, batch: tuple[int, int], constant: bool) -> Matmul:
    """Rows of 192 times 192×256 with bias and GELU; batched ones read a transposed second factor."""
    m, n, k, dtype = 48, 256, 192, precision.storage
    biased = apply("Add", Acc(), Operand(0))
    heads = batch[1]
    a = Tensor(dtype, (heads * m * k, m * k, k, 1))
    b = Tensor(dtype, (0, 0, n, 1) if constant else (heads * n * k, n * k, 1, k))
    y = Tensor(dtype, (heads * m * n, m * n, n, 1))
    expression = express("Gelu", [biased], {})
    epilogue = Epilogue(expression, (Tensor(dtype, (0, 0, 0, 1)),))
    return Matmul(
        precision, (Extent(batch[0]), heads), Extent(m), n, k, a, b, constant, y, epilogue
    )


@pytest.mark.parametrize("precision", list(ASKED))
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_computes_fused_convolutions(
    cuda: CudaDevice, library: Cudnn, name: str, precision: Precision
) -> None:
    _right(cuda, library, CONVOLUTIONS[name](precision))


def test_computes_transposed_convolutions(cuda: CudaDevice, library: Cudnn) -> None:
    _right(cuda, library, fused_convolution(transposed=True, stride=2, pads=(1, 1, 0, 0)))


@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        *(("Gelu", {}), ("Sigmoid", {}), ("Tanh", {}), ("Swish", {}), ("HardSwish", {})),
        *(("Clip", {"min": 0.0, "max": 6.0}), ("Clip", {"min": -0.3, "max": 0.7})),
        *(("LeakyRelu", {"alpha": 0.1}), ("Elu", {})),
    ],
)
def test_computes_activations(
    cuda: CudaDevice, library: Cudnn, operator: str, attributes: dict[str, float]
) -> None:
    expression = express(operator, [apply("Mul", BIAS, Scalar(0.06))], attributes)
    _right(cuda, library, fused_convolution(Precision.FP16, expression))


@pytest.mark.parametrize("batch", [(1, 1), (3, 1), (2, 4)])
@pytest.mark.parametrize("constant", [True, False])
def test_computes_fused_products(
    cuda: CudaDevice, library: Cudnn, batch: tuple[int, int], constant: bool
) -> None:
    _right(cuda, library, _matmul(Precision.FP16, batch, constant))


@pytest.mark.parametrize("dtype", [DType.FP16, DType.FP32])
@pytest.mark.parametrize("kind", [NormKind.LAYER, NormKind.RMS])
def test_computes_normalisations(
    cuda: CudaDevice, library: Cudnn, kind: NormKind, dtype: DType
) -> None:
    table, vector = Tensor(dtype, (7 * 256, 256, 1)), Tensor(dtype, (0, 0, 1))
    scaled = apply("Mul", Acc(), Operand(0))
    shifted = kind is NormKind.LAYER
    epilogue = Epilogue(
        apply("Add", scaled, Operand(1)) if shifted else scaled, (vector,) * (1 + shifted)
    )
    rows = (kind, Extent(3), (3, 7), 256, 1e-5)
    _right(cuda, library, Normalisation(*rows, Operand(0), (table,), table, epilogue))


def test_strict_fp32_is_never_tf32(cuda: CudaDevice, library: Cudnn) -> None:
    """Tf32 errs by a hundred times of what fp32 allows, so one such engine would show."""
    problem = fused_convolution(Precision.FP32)
    ready = _ready(library, problem)
    _, errors = _errors(cuda, problem, ready)
    assert max(errors) <= 1.0, dict(zip((c.name for c in ready), errors, strict=True))
    tf32 = fused_convolution(Precision.TF32)
    case = random_case(problem, 0)
    with Operands(cuda, tf32, case) as operands:
        results = [operands.run(candidate) for candidate in _ready(library, tf32)]
    assert max(worst_error(result, case) for result in results) > 10.0


def test_a_captured_candidate_gives_the_same(cuda: CudaDevice, library: Cudnn) -> None:
    problem = fused_convolution(Precision.FP16, RESIDUAL)
    candidate = _ready(library, problem)[0]
    case = random_case(problem, 1)
    with Operands(cuda, problem, case) as operands, Workspace(cuda, [candidate]) as workspace:
        replay = capture(cuda, candidate, operands.pointers(candidate), workspace, 3)
        operands.poison()
        replay.replay()
        cuda.synchronize()
        assert worst_error(operands.result(), case) <= 1.0


def test_refuses_addresses_that_are_not_aligned(cuda: CudaDevice, library: Cudnn) -> None:
    problem = fused_convolution()
    candidate = _ready(library, problem)[0]
    with Operands(cuda, problem, random_case(problem, 0)) as operands:
        pointers = operands.pointers(candidate)
        with pytest.raises(LaunchError, match="multiples of 16"):
            candidate.run((pointers[0] + 2, *pointers[1:]), 0, cuda.stream)


def _ready(library: Cudnn, problem: Problem) -> list[CudnnCandidate]:
    ready, reasons = make_ready(library, problem, MOST)
    assert ready, reasons
    return ready


def _errors(
    cuda: CudaDevice, problem: Problem, ready: list[CudnnCandidate]
) -> tuple[RandomCase, list[float]]:
    case = random_case(problem, 0)
    with Operands(cuda, problem, case) as operands:
        return case, [worst_error(operands.run(candidate), case) for candidate in ready]


def _right(cuda: CudaDevice, library: Cudnn, problem: Problem) -> None:
    """Some candidate is right, and a right one is noticed to be wrong when one element is changed."""
    ready = _ready(library, problem)
    case, errors = _errors(cuda, problem, ready)
    assert min(errors) <= 1.0, dict(zip((each.name for each in ready), errors, strict=True))
    changed = np.array(case.output)
    changed.flat[changed.size // 2] += 1.5 * case.allowed.flat[changed.size // 2]
    assert worst_error(changed, case) > 1.0
