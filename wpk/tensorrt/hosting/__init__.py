"""TensorRT's engine hosts generated kernels: plugin nodes and layers, and engines that hold them, measured."""

from wpk.tensorrt.hosting.engines import EngineBuilder, EngineProfiler, HostedEngine, seconds_of
from wpk.tensorrt.hosting.network_layers import add_plugin
from wpk.tensorrt.hosting.plugin_library import load_plugins
from wpk.tensorrt.hosting.plugin_nodes import with_plugins
from wpk.tensorrt.hosting.support import without_implementation
