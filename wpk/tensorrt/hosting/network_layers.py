"""Plugins as layers of a network that a program defines itself, without ONNX."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wpk.nvinfer import Binding, TensorRTError, element_type_name
from wpk.spec import operator_bytes, operator_id
from wpk.tensorrt.hosting.plugin_nodes import ID, NAME, NAMESPACE, SPEC, VERSION
from wpk.tensorrt.operators import Packed, PluginOperator


def add_plugin(
    binding: Binding, network: Any, name: str, plugin: PluginOperator, inputs: Sequence[Any]
) -> Any:
    """Add an operator's plugin to a network.

    Args:
        binding: Whose network it is, with the plugins loaded (`load_plugins`).
        network: An INetworkDefinition. The packed constants must live until it was built: ``plugin`` holds them.
        name: Of the layer.
        plugin: The operator.
        inputs: Its activations, an ITensor each.

    Returns:
        The IPluginV3Layer; its outputs are the operator's.

    Raises:
        TensorRTError: The plugin cannot be created, or the network does not take it.
    """
    module = binding.module
    data = operator_bytes(plugin.spec)
    kinds = module.PluginFieldType
    fields = [
        module.PluginField(SPEC, np.frombuffer(data, np.int8), kinds.INT8),
        module.PluginField(ID, np.frombuffer(operator_id(data).encode(), np.int8), kinds.CHAR),
    ]
    creator = module.get_plugin_registry().get_creator(NAME, VERSION, NAMESPACE)
    if creator is None:
        raise TensorRTError(
            f"{binding.title} knows no plugin {NAME}",
            fix="load the plugin library first: wpk.tensorrt.hosting.load_plugins",
        )
    collection = module.PluginFieldCollection(fields)
    made = creator.create_plugin(name, collection, module.TensorRTPhase.BUILD)
    constants = [_constant(binding, network, each) for each in plugin.weights]
    layer = None if made is None else network.add_plugin_v3([*inputs, *constants], [], made)
    if layer is None:
        raise TensorRTError(
            f"{binding.title} does not take operator '{name}' as a plugin",
            fix="see what the plugin wrote to stderr; inputs must have the types and ranks of its spec",
        )
    layer.name = name
    return layer


def _constant(binding: Binding, network: Any, packed: Packed) -> Any:
    kind = getattr(binding.module.DataType, element_type_name(packed.dtype))
    values = np.ascontiguousarray(packed.array)
    weights = binding.module.Weights(kind, values.ctypes.data, values.size)
    return network.add_constant(values.shape, weights).get_output(0)
