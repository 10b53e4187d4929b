"""Engines that TensorRT builds from the optimized graph."""

from wpk.nvinfer import Binding, TensorRTError, binding_of, find_binding
from wpk.tensorrt.build import BuiltEngine, Layer, Request, Tensor, build
from wpk.tensorrt.configuration import require_target
from wpk.tensorrt.exported import exported, operator_names, operator_of
from wpk.tensorrt.profiles import ANY_BATCH
from wpk.tensorrt.sidecar import describe, read_sidecar, sidecar_path, write_engine
