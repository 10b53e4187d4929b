"""Problems of every kind of node that cuDNN is told of, of every precision where that changes the graph."""

from __future__ import annotations

from dataclasses import replace

from subjects.problems import convolution

from support.problems.cudnn_problems import (
    CAPPED,
    attentions,
    elementwise,
    reductions,
    softmaxes,
    with_scores,
)
from support.problems.fused_convolutions import CONVOLUTIONS
from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.operators import express
from wpk.problems import Epilogue, Matmul, Normalisation, Problem, Tensor
from wpk.problems.normalisation import NormKind

FP16 = DType.FP16


def problems() -> dict[str, Problem]:
    """By name."""
    found: dict[str, Problem] = {}
    for precision in (Precision.FP32, Precision.FP16, Precision.BF16):
        found |= {f"{n} {precision}": make(precision) for n, make in CONVOLUTIONS.items()}
        found |= {f"{n} {precision}": each for n, each in attentions(precision).items()}
    for each in (softmaxes, reductions, elementwise):
        found |= {f"{each.__name__} {n}": problem for n, problem in each(FP16).items()}
    attention = attentions(Precision.FP16)["scaled"]
    gelu = express("Gelu", (Acc(),), {"approximate": "tanh"})
    found["capped"] = with_scores(attention, CAPPED)
    found["gelu"] = replace(convolution(8, 16, (10, 9)), epilogue=Epilogue(gelu, ()))
    found["matmul"] = Matmul(
        *(Precision.FP16, (Extent(2), 3), Extent(5), 7, 11),
        *(Tensor(FP16, (165, 55, 11, 1)), Tensor(FP16, (0, 0, 7, 1)), True),
        *(Tensor(FP16, (105, 35, 7, 1)), Epilogue(Acc(), ())),
    )
    shifted = apply("Add", apply("Mul", Acc(), Operand(0)), Operand(1))
    for kind, epilogue in (
        (NormKind.LAYER, Epilogue(shifted, (Tensor(FP16, (0, 0, 1)),) * 2)),
        (NormKind.RMS, Epilogue(apply("Mul", Acc(), Operand(0)), (Tensor(FP16, (0, 0, 1)),))),
    ):
        table = Tensor(FP16, (24, 8, 1))
        rows = (Extent(2), (2, 3), 8, 1e-5, Operand(0), (table,), table)
        found[kind.value] = Normalisation(kind, *rows, epilogue)
    return found
