"""The TensorRT that is installed: its Python module, what it reports, and its engines, executed on a GPU."""

from wpk.nvinfer.binding import Binding, binding_of, find_binding
from wpk.nvinfer.calls import EngineCalls
from wpk.nvinfer.element_types import ELEMENT_TYPES, element_type_name
from wpk.nvinfer.errors import TensorRTError, build_failed, heard, new_recorder, shared_logger
from wpk.nvinfer.layer_times import new_profiler
from wpk.nvinfer.networks import network_flags
from wpk.nvinfer.placed import Arrays, PlacedEngine
from wpk.nvinfer.session import EngineSession, EngineTensor
