"""What TensorRT has no implementation for, by its parser's words."""

import onnx

from wpk.nvinfer import Binding, shared_logger
from wpk.tensorrt.configuration import network_flags
from wpk.tensorrt.model_file import model_file


def without_implementation(binding: Binding, model: onnx.ModelProto) -> frozenset[str]:
    """Names of the nodes that the parser says it cannot take.

    Args:
        binding: Whose parser.
        model: What `wpk.tensorrt.exported` gives.
    """
    module = binding.module
    logger = shared_logger(module)
    builder = module.Builder(logger)
    network = builder.create_network(network_flags(binding))
    parser = module.OnnxParser(network, logger)
    with model_file(model) as path:
        if parser.supports_model_v2(path.read_bytes(), str(path)):
            return frozenset()
    taken = {
        index
        for number in range(parser.num_subgraphs)
        if parser.is_subgraph_supported(number)
        for index in parser.get_subgraph_nodes(number)
    }
    return frozenset(node.name for index, node in enumerate(model.graph.node) if index not in taken)
