"""Documents in the forms of TensorRT 10 and 11, written by us: no TensorRT made them."""

import json
from typing import Any

OURS = "written by wpk's tests, not by TensorRT"


def tensor_10(name: str, *, shape: tuple[int, ...] = (1, 8, 4, 4), words: str = "Half") -> Any:
    """A layer's tensor as TensorRT 10 describes it."""
    return {"Name": name, "Dimensions": list(shape), "Format/Datatype": words}


def tensor_11(name: str, *, shape: tuple[int, ...] = (1, 8, 4, 4), words: str = "Half") -> Any:
    """The same as TensorRT 11 does."""
    return {"Name": name, "Dimensions": list(shape), "Format": "kHWC8", "DataType": words}


def engine_10(layers: list[Any]) -> str:
    """An engine's information as of TensorRT 10."""
    return json.dumps({"Origin": OURS, "Layers": layers, "Bindings": ["x", "y"]})


def engine_11(layers: list[Any]) -> str:
    """The same as of TensorRT 11."""
    ends = [
        {"Name": name, "IOMode": mode, "DataType": "Float", "Dimensions": [1, 8, 4, 4]}
        for name, mode in (("x", "Input"), ("y", "Output"))
    ]
    return json.dumps({"Origin": OURS, "Layers": layers, "I/O Tensors": ends})


AUTOTUNING = f"""{OURS}
[V] [TRT] Autotuning op conv/Conv + conv/Relu(key: 0x00112233445566778899aabbccddeeff): [ONNX Layer: conv/Conv]
[V] [TRT] Sorted table of all evaluated tactics:
[V] [TRT] tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter
[V] [TRT]    4, 0.0125, 1.00000, 0.84, one_kernel<half, 2>, 0xa1,
[V] [TRT]   34, 1.5e-2, 1.20000, 0.92, another_kernel, 0xb2,
[V] [TRT] The selected tactic is (tactic hash, cost(in ms)):0xa1, 0.0125
[V] [TRT]    9, 0.5, 1.00000, 0.84, of_nobody, 0xc3,
[V] [TRT] Autotuning op MatMul(key: 0x01):
[V] [TRT]    1, 2, 1.00000, 0.1, kernel, 0xd4,
"""
