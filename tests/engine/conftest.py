"""A small plan that contradicts nothing, for tests of the file and its checks."""

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest

from wpk.build.resources import KernelResources
from wpk.dtypes import DType, Precision
from wpk.engine.plan import (
    SCHEMA,
    Check,
    Choice,
    Evidence,
    Funnel,
    Kernel,
    Memory,
    Plan,
    PlanBundle,
    Port,
    Provenance,
    Step,
    Weight,
)
from wpk.expression import Operand, apply
from wpk.extent import Extent
from wpk.launch import InputArgument, Launch, OutputArgument, SizeArgument
from wpk.lowering.program import Buffer, Operator, Value
from wpk.pipeline import optimize
from wpk.problems import Elementwise, Tensor

N = Extent(2, "n")
KERNEL = "ab" * 32
CUBIN = b"\x7fELF machine code"
SOURCE = "#include <wpk/schedules/elementwise.cuh>\n"


def _value(name: str, buffer: str) -> Value:
    return Value(name, DType.FP32, N, (2, 8), (8, 1), 0, buffer, 0, (2, 8))


def _step() -> Step:
    tensor = Tensor(DType.FP32, (8, 1))
    weight = Tensor(DType.FP32, (0, 1))
    problem = Elementwise(N, (2, 8), apply("Add", Operand(0), Operand(1)), (tensor, weight), tensor)
    arguments = (InputArgument(0), InputArgument(1), SizeArgument("n"), OutputArgument(0))
    return Step(
        Operator("add_0", ("Add_0",), problem, ("x", "w"), ("y",), "add_0"),
        ("x", "w"),
        Choice("elementwise", 1, (("vector", 4),)),
        (Launch(KERNEL, "wpk_elementwise", ("n", 1, 1), (32, 1, 1), 0, arguments),),
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
        provenance=Provenance("m.onnx", "0" * 64, 17, {"x": (2, 8)}, ()),
        checks=(Check("onnxruntime", True, "median 0, worst 0"),),
    )
    return PlanBundle(plan, {"w": w}, {KERNEL: CUBIN}, {KERNEL: SOURCE})


MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 3, 9, 7] x) => (float[batch, 5] y)
{
  c = Conv<pads = [1, 1, 1, 1]>(x, w, b)
  r = Relu(c)
  p = MaxPool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(r)
  a = GlobalAveragePool(p)
  f = Flatten(a)
  l = MatMul(f, m)
  y = Softmax<axis = 1>(l)
}
"""
WEIGHTS = {"w": (6, 3, 3, 3), "b": (6,), "m": (6, 5)}


def save_model(path: Path, seed: int) -> Path:
    """A small network with seeded weights and a free batch."""
    rng = np.random.default_rng(seed)
    model = onnx.parser.parse_model(MODEL)
    for name, shape in WEIGHTS.items():
        values = rng.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    onnx.save(model, path)
    return path


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network with the weights of seed 0."""
    return save_model(tmp_path_factory.mktemp("model") / "small.onnx", 0)


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same network with the weights of seed 1."""
    return save_model(tmp_path_factory.mktemp("model") / "other.onnx", 1)


@pytest.fixture(scope="session", params=["fp32", "fp16"])
def small_plan(
    request: pytest.FixtureRequest, small_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Its plan, unchecked."""
    path = tmp_path_factory.mktemp("plan") / "small.plan"
    optimize(small_model, path, target="h200", precision=request.param, check=False)
    return path
