"""``Where(IsNaN(p), 0, p)`` behind a softmax, and a cast behind that: the cast goes in front.

Exporters guard softmax against rows of nothing but -inf so. In 16 bits the guard stands between softmax and cast, where
TensorRT's compiler (seen in TensorRT for RTX 1.7) takes the product behind it for attention and then fails its own
check. A cast to another floating type keeps what is NaN and what is not, so that the order does not matter.
"""

import numpy as np
import onnx

_FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}


def cast_in_front(graph: onnx.GraphProto) -> None:
    """Move casts of guarded values in front of their guards, in place."""
    makers = {name: node for node in graph.node for name in node.output}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    given = {port.name for port in graph.output}
    for cast in [
        node for node in graph.node if node.op_type == "Cast" and _type_of(node) in _FLOATS
    ]:
        where = makers.get(cast.input[0])
        if where is None or where.op_type != "Where" or where.output[0] in given:
            continue
        guard, value, guarded = (
            makers.get(where.input[0]),
            makers.get(where.input[1]),
            where.input[2],
        )
        alone = len(readers[where.output[0]]) == 1 and len(readers[where.input[0]]) == 1
        if guard is None or guard.op_type != "IsNaN" or guard.input[0] != guarded or not alone:
            continue
        if value is not None and value.op_type == "Constant":
            _move(graph, cast, where, guard, value)


def _type_of(cast: onnx.NodeProto) -> int:
    return next(int(each.i) for each in cast.attribute if each.name == "to")


def _move(
    graph: onnx.GraphProto,
    cast: onnx.NodeProto,
    where: onnx.NodeProto,
    guard: onnx.NodeProto,
    value: onnx.NodeProto,
) -> None:
    """Cast the guarded value and the constant; the guard then gives what the cast gave."""
    narrow, result = f"{cast.output[0]}.unguarded", cast.output[0]
    constant = onnx.numpy_helper.to_array(onnx.helper.get_node_attr_value(value, "value"))
    kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(_type_of(cast)))
    number = onnx.helper.make_tensor(
        "value", _type_of(cast), constant.shape, constant.astype(kind).tobytes(), raw=True
    )
    made = onnx.helper.make_node(
        "Constant", [], [f"{result}.value"], f"{cast.name}.value", value=number
    )
    graph.node.remove(cast)
    at = next(place for place, node in enumerate(graph.node) if node is guard or node == guard)
    cast.input[0], cast.output[0] = where.input[2], narrow
    guard.input[0] = narrow
    where.input[1], where.input[2], where.output[0] = made.output[0], narrow, result
    graph.node.insert(at, cast)
    graph.node.insert(at, made)
