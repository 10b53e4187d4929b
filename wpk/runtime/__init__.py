"""ONNX Runtime in a process of its own, for what neither kernels nor libraries compute."""

from wpk.runtime.forms import RUNTIME, RefusedInputsError, runtime_version
from wpk.runtime.process import RuntimeProcess
