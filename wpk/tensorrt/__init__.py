"""Engines that TensorRT builds from the optimized graph."""

from wpk.tensorrt.binding import Binding, binding_of, find_binding
from wpk.tensorrt.build import BuiltEngine, Layer, Request, Tensor, build
from wpk.tensorrt.configuration import require_target
from wpk.tensorrt.errors import TensorRTError
from wpk.tensorrt.exported import exported, operator_names, operator_of
from wpk.tensorrt.profiles import BatchRange
from wpk.tensorrt.sidecar import describe, sidecar_path, write_engine
