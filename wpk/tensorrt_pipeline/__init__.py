"""``wpk.optimize_tensorrt``: from a model to an engine of TensorRT that hosts generated kernels."""

from wpk.tensorrt_pipeline.optimize import optimize_tensorrt
from wpk.tensorrt_pipeline.outcome import TensorRTOutcome
