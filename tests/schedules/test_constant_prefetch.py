"""What kernels ask for before the wait: constants and nothing else, and nothing beyond an end."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from subjects.problems import convolution, matmul
from support.faults.planter import Fault, change, plant
from support.launches.early_kernels import CASES, Case, operands, schedule

from wpk.dtypes import DType
from wpk.emulator import EmulatorError
from wpk.expression import Operand, apply
from wpk.problems import Attention, Elementwise, Epilogue, Tensor
from wpk.schedules.registry import TEMPLATE_OF

_TOUCHED = "touched before waitForPrevious"


def ahead(case: Case, constant: bool = True) -> Case:
    """The case with its biases, scales and tables as a lowered model has them; what lies like y is computed."""
    problem = case.problem

    def known(tensors: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(replace(t, constant=constant and t != problem.y) for t in tensors)

    if isinstance(problem, Elementwise):
        return replace(case, problem=replace(problem, inputs=known(problem.inputs)))
    field = "scores" if isinstance(problem, Attention) else "epilogue"
    epilogue = getattr(problem, field)
    read = replace(epilogue, operands=known(epilogue.operands))
    return replace(case, problem=replace(problem, **{field: read}))


def first(template: str, **parameters: int) -> Case:
    """The first case of a template with these parameters."""
    return next(
        case
        for case in CASES
        if case.template == template and parameters.items() <= case.schedule.items()
    )


def with_matrix(case: Case, **fields: Any) -> Case:
    """A product to which a matrix is added: a residual, which lies like y, or what differs from it in some fields."""
    y: Epilogue = case.problem.epilogue
    matrix = replace(case.problem.y, **fields)
    sums = Epilogue(apply("Add", y.expression, Operand(1)), (*y.operands, matrix))
    shapes = (*case.inputs, case.output)
    return replace(case, problem=replace(case.problem, epilogue=sums), inputs=shapes)


def with_table(case: Case) -> Case:
    """Element-wise work on images, to which a number of each channel is added."""
    problem: Elementwise = case.problem
    sums = apply("Add", problem.expression, Operand(len(problem.inputs)))
    inputs = (*problem.inputs, Tensor(DType.FP32, (0, 1, 0, 0)))
    problem = replace(problem, expression=sums, inputs=inputs)
    return replace(case, problem=problem, inputs=(*case.inputs, (1, case.output[1], 1, 1)))


def warpgroups(**parameters: int) -> Case:
    """A product of 72 rows and 40 columns by warpgroups, with a bias and a residual."""
    product = matmul(72, 40, 128, bias=DType.FP16, residual=True)
    tile = {"block_m": 64, "block_n": 64, "block_k": 64, "stages": 2}
    y = (1, 1, 72, 40)
    inputs = ((1, 1, 72, 128), (128, 40), (1, 1, 1, 40), y)
    return Case("gemm_wgmma", product, tile | parameters, inputs, y)


def halo() -> Case:
    """A convolution of 8 x 8 pixels in two tiles, the second of which reaches over the edge."""
    layer = convolution(64, 24, 8, bias=DType.FP16, residual=True, relu=True)
    tile = {"tile_p": 7, "tile_q": 8, "block_n": 16, "teams": 2, "patches": 1, "carry": 0}
    pixels = (1, 24, 8, 8)
    return Case(
        "conv_halo", layer, tile, ((1, 64, 8, 8), (24, 64, 3, 3), (1, 24, 1, 1), pixels), pixels
    )


PRODUCTS = (
    with_matrix(first("gemm_mma")),
    with_matrix(first("gemm_simt", split=2), alignment=2),
    first("conv_mma", split=3),
    first("conv_simt"),
    first("conv_patch"),
    first("conv_grouped"),
    warpgroups(),
    warpgroups(split=2),
    warpgroups(split=2, cluster=1),
    warpgroups(persistent=1),
    warpgroups(persistent=1, pingpong=1),
    halo(),
)
OTHERS = (
    *(first(name) for name in ("depthwise", "normalisation", "attention_simt", "attention_mma")),
    with_table(first("elementwise")),
    first("depthwise_rows"),
    first("attention_wgmma"),
)


def run(case: Case, execution: Any, template: Any, early: int = 1) -> NDArray[Any]:
    y: NDArray[Any] = execution.run(
        template, case.problem, schedule(case, early), operands(case, seed=5), case.output
    )
    return y


def _name(case: Case) -> str:
    return f"{case.template} {' '.join(f'{k}={v}' for k, v in case.schedule.items())}"


@pytest.mark.parametrize("case", [*PRODUCTS, *OTHERS], ids=_name)
def test_constants_are_asked_for_while_all_else_is_closed(
    case: Case, checking_execution: Any
) -> None:
    template = TEMPLATE_OF[case.template]
    y = run(ahead(case), checking_execution, template)
    np.testing.assert_array_equal(y, run(ahead(case, False), checking_execution, template, 0))


def _taken_for_constants(point: str, old: str) -> Fault:
    return Fault("what kernels write is taken for constants", change(point, old, "true"), _TOUCHED)


EPILOGUE = _taken_for_constants("constants_only", "(Constants & 1) != 0")
POSITION = _taken_for_constants("row_constants_only", "(Constants & 1) != 0")


@pytest.mark.parametrize(
    ("case", "fault"),
    [
        *((case, EPILOGUE) for case in (PRODUCTS[0], PRODUCTS[1], PRODUCTS[5], PRODUCTS[-1])),
        *((case, POSITION) for case in OTHERS[:3]),
        (OTHERS[4], replace(POSITION, name="all is taken for constants")),
        (OTHERS[1], _taken_for_constants("tail_constant", "Problem::operand_constants == kAll")),
        (
            PRODUCTS[0],
            Fault(
                "columns beyond the last", change("sectors_end", "columnEnd", "columnEnd + 4096")
            ),
        ),
        (PRODUCTS[1], Fault("rows beyond the last", change("rows_end", "rowEnd", "rowEnd + 4096"))),
        (
            OTHERS[3],
            Fault(
                "rows beyond the last", change("bias_rows", "lengths.queries() - firstRow", "4096")
            ),
        ),
        (
            OTHERS[0],
            Fault("a filter without an end", change("filter_end", "filterH", "filterH + 64")),
        ),
    ],
    ids=lambda each: _name(each) if isinstance(each, Case) else each.name,
)
def test_a_planted_fault_is_seen(case: Case, fault: Fault, checking_execution: Any) -> None:
    faulty = plant(TEMPLATE_OF[case.template], fault)
    with pytest.raises(EmulatorError, match=fault.message or "."):
        run(
            ahead(case, constant=not fault.name.startswith("what kernels")),
            checking_execution,
            faulty,
        )
