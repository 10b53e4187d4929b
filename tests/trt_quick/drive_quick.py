"""Run in NVIDIA's real bindings without its libraries: registers a quick plugin and asks it for all it has to say.

    drive_quick.py PICKLE BATCH    # prints JSON

Expressions are built by a builder of ours, which computes numbers. It shows that the bindings take what wpk gives them;
it is no proof of working in TensorRT.
"""

import json
import pickle
import sys

import tensorrt_bindings as trt

sys.modules["tensorrt"] = trt  # as its own tensorrt.plugin imports it

import tensorrt_bindings.plugin as trtp  # noqa: E402
from tensorrt_bindings.plugin import _lib, _tensor  # noqa: E402

from wpk.nvinfer import Binding  # noqa: E402
from wpk.tensorrt.quick import register  # noqa: E402


class Number:
    """An expression that is a number."""

    def __init__(self, value):
        self.value = value

    def is_constant(self):
        return True

    def get_constant_value(self):
        return self.value


trt.IDimensionExpr = Number  # which only TensorRT itself could make


class Builder:
    def constant(self, value):
        return Number(value)

    def operation(self, operation, first, second):
        a, b = first.value, second.value
        return Number(
            {
                "SUM": lambda: a + b,
                "PROD": lambda: a * b,
                "MAX": lambda: max(a, b),
                "MIN": lambda: min(a, b),
                "SUB": lambda: a - b,
                "FLOOR_DIV": lambda: a // b,
                "CEIL_DIV": lambda: -(-a // b),
                "EQUAL": lambda: int(a == b),
                "LESS": lambda: int(a < b),
            }[operation.name]()
        )


def number(expression):
    return expression._expr.value


def main():
    with open(sys.argv[1], "rb") as stream:
        operator = pickle.load(stream)
    batch = int(sys.argv[2])
    register(Binding(trt, False, trt.__version__), trtp, operator)
    identity = f"wpk::{operator.name}"
    known = _lib.QDP_REGISTRY[identity]
    _tensor.SymIntExpr._exprBuilder = Builder()
    inputs = []
    for each in operator.spec.inputs:
        shape = tuple(batch if isinstance(extent, str) else extent for extent in each.shape)
        inputs.append(trtp.from_shape_expr(shape, trt.float16))
    outputs = known.register_func(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    name, ptx, launch, numbers = known.aot_impl_func(*inputs, outputs, 1)
    (combination,) = known.autotune_func(*inputs, outputs)
    found = {
        "inputs": known.input_tensor_names,
        "outputs": known.num_outputs,
        "shapes": [[number(extent) for extent in each.shape_expr] for each in outputs],
        "types": [str(each.dtype) for each in outputs],
        "formats": combination.layouts,
        "io_types": combination.io_types,
        "entry": name,
        "ptx": ptx.decode()[:4000],
        "grid": [number(getattr(launch, f"grid_{axis}")) for axis in "xyz"],
        "block": [number(getattr(launch, f"block_{axis}")) for axis in "xyz"],
        "shared": number(launch.shared_mem),
        "numbers": [number(each) for each in numbers],
        "kinds": [type(each).__name__ for each in numbers],
    }
    json.dump(found, sys.stdout)


main()
