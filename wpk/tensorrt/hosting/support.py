"""What TensorRT has no implementation for, by its parser's words."""

import onnx

from wpk.nvinfer import Binding, TensorRTError, network_flags, shared_logger
from wpk.tensorrt.model_file import model_file


def without_implementation(binding: Binding, model: onnx.ModelProto) -> frozenset[str]:
    """Names of the nodes that the parser says it cannot take.

    Args:
        binding: Whose parser.
        model: What `wpk.tensorrt.exported` gives.

    Raises:
        TensorRTError: It refuses the model for another reason than a node.
    """
    module = binding.module
    logger = shared_logger(module)
    builder = module.Builder(logger)
    network = builder.create_network(network_flags(binding))
    parser = module.OnnxParser(network, logger)
    with model_file(model) as path:
        if parser.supports_model_v2(path.read_bytes(), str(path)):
            return frozenset()
    # A subgraph is called supported only where nothing at all was refused: what counts is which nodes are in none.
    taken = {
        index
        for number in range(parser.num_subgraphs)
        for index in parser.get_subgraph_nodes(number)
    }
    taken -= {parser.get_error(number).node() for number in range(parser.num_errors)}
    lacking = frozenset(
        node.name for index, node in enumerate(model.graph.node) if index not in taken
    )
    if not lacking:
        errors = [parser.get_error(number).desc() for number in range(parser.num_errors)]
        raise TensorRTError(
            f"{binding.title} refuses the model, and no node of it: {'; '.join(errors)}",
            fix="build a plan of wpk's own (--engine wpk)",
        )
    return lacking
