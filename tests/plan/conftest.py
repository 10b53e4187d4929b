"""A small plan that contradicts nothing, for tests of the file and its checks."""

import hashlib

import numpy as np
import pytest
from support.plans.candidates import kernel

from wpk.build import KernelResources
from wpk.dtypes import DType, Precision
from wpk.expression import Operand, apply
from wpk.extent import Extent
from wpk.launch import InputArgument, Launch, OutputArgument, SizeArgument
from wpk.lowering.program import Buffer, Operator, Value
from wpk.plan.plan import (
    SCHEMA,
    Check,
    Evidence,
    Funnel,
    Kernel,
    Memory,
    Outcome,
    Plan,
    PlanBundle,
    Port,
    Step,
    Weight,
)
from wpk.plan.provenance import Provenance
from wpk.problems import Elementwise, Tensor

N = Extent(2, "n")
KERNEL = "ab" * 32
CUBIN = b"\x7fELF machine code"
SOURCE = "#include <wpk/schedules/elementwise.cuh>\n"


def _value(name: str, buffer: str) -> Value:
    return Value(name, DType.FP32, N, (2, 8), (8, 1), 0, buffer, 0, ("n", 8))


def _step() -> Step:
    tensor = Tensor(DType.FP32, (8, 1))
    weight = Tensor(DType.FP32, (0, 1))
    problem = Elementwise(N, (2, 8), apply("Add", Operand(0), Operand(1)), (tensor, weight), tensor)
    arguments = (InputArgument(0), InputArgument(1), SizeArgument("n"), OutputArgument(0))
    return Step(
        Operator("add_0", ("Add_0",), problem, ("x", "w"), ("y",), "add_0"),
        ("x", "w"),
        kernel("elementwise", (("vector", 4),)),
        (Launch(KERNEL, "wpk_elementwise", ("n", 1, 1), (32, 1, 1), 0, arguments),),
        0,
        Evidence(1e-6, "hbm", 2e-6, 0.5, (Funnel("elementwise", "", 8, 6, 4, 2),)),
    )


@pytest.fixture
def bundle() -> PlanBundle:
    """Y = x + w with a free batch."""
    w = np.arange(8, dtype=np.float32)
    plan = Plan(
        schema=SCHEMA,
        wpk="0.1.0",
        target="h200",
        arch="sm_90a",
        precision=Precision.FP32,
        free={"n": 2},
        inputs=(Port("x", DType.FP32, ("n", 8)),),
        outputs=(Port("y", DType.FP32, ("n", 8)),),
        values={"x": _value("x", "bx"), "y": _value("y", "by")},
        buffers={name: Buffer(name, _value(name, name).span()) for name in ("bx", "by")},
        weights={
            "w": Weight("w", "w", None, DType.FP32, (8,), hashlib.sha256(w.tobytes()).hexdigest())
        },
        steps=(_step(),),
        kernels={
            KERNEL: Kernel(
                KERNEL,
                "wpk_elementwise",
                "nvrtc 13.5",
                hashlib.sha256(CUBIN).hexdigest(),
                hashlib.sha256(SOURCE.encode()).hexdigest(),
                KernelResources(16, 0, 0, 0, 0),
                {},
            )
        },
        memory=Memory(512, 512, 32),
        provenance=Provenance("m.onnx", "0" * 64, 17, {"x": ((2, 8),)}, ()),
        checks=(Check("onnxruntime", Outcome.OK, "median 0, worst 0"),),
    )
    return PlanBundle(plan, {"w": w}, {KERNEL: CUBIN}, {KERNEL: SOURCE})
