"""Make a failing case smaller: fewer outputs, fewer nodes, fewer sizes, the plainest precision.

Every step cuts a model or leaves a part of it out; what still fails in the same way is kept. A cut
turns an inner tensor into an input, which is drawn from the range that its values had.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import onnx

from fuzzing.builder import DRAWN_SIZES, FREE, Range
from fuzzing.evaluation import Array, ModelRunner, reads
from fuzzing.graphs import Case
from fuzzing.rounding import FLOATS

Fails = Callable[[Case], bool]


def shrink(case: Case, fails: Fails, seconds: float) -> Case:
    """The smallest case found that still fails.

    Args:
        case: It fails.
        fails: Whether another one does, in the same way.
        seconds: Ends the search.
    """
    end = time.monotonic() + seconds
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(case):
            if time.monotonic() > end:
                return case
            if _is_valid(candidate) and fails(candidate):
                case, smaller = candidate, True
                break
    return case


def _is_valid(case: Case) -> bool:
    try:
        onnx.checker.check_model(case.model, full_check=True)
        for size in case.sizes:
            ModelRunner(case.model).run(case.inputs(size, 0))
    except Exception:  # ONNX Runtime's share no base class
        return False
    return True


def _smaller(case: Case) -> Iterator[Case]:
    """Candidates, the boldest first."""
    model = case.model
    names = [output.name for output in model.graph.output]
    if len(names) > 1:
        for name in names:
            yield _with(case, outputs=[name])
        for name in names:
            yield _with(case, outputs=[n for n in names if n != name])
    facts = _facts(case)
    count = len(model.graph.node)
    for index in range(count - 1):  # the beginning of the model alone
        yield _with(case, facts, outputs=_last(model, index))
    for index in reversed(range(count)):  # the end of it alone
        yield _with(case, facts, inputs=list(model.graph.node[index].output))
    for index in range(count):
        yield from _bypassed(case, facts, index)
    if len(case.sizes) > 1:
        yield from (replace(case, sizes=(size,)) for size in case.sizes)
    for precision in ("fp32", "fp16"):
        if case.precision not in ("fp32", precision):
            yield replace(case, precision=precision)
    if case.is_free:
        yield _fixed(case)
    yield from _without_optional(case)


def _last(model: onnx.ModelProto, index: int) -> list[str]:
    return [name for name in model.graph.node[index].output if name]


def _facts(case: Case) -> dict[str, tuple[Array, ...]]:
    """Every tensor's values at two sizes."""
    sizes = DRAWN_SIZES if case.is_free else DRAWN_SIZES[:1]
    try:
        runs = [ModelRunner(case.model).run(case.inputs(size, 0)) for size in sizes]
    except Exception:  # it does not run at these sizes
        return {}
    return {name: tuple(run[name] for run in runs) for name in runs[0]}


def _with(
    case: Case,
    facts: Mapping[str, Sequence[Array]] | None = None,
    outputs: Sequence[str] | None = None,
    inputs: Sequence[str] = (),
) -> Case:
    """The part of a model that makes some outputs, from some tensors as further inputs."""
    model, graph = case.model, case.model.graph
    known = facts or {}
    wanted = list(outputs or [output.name for output in graph.output])
    kept, needed = list[onnx.NodeProto](), set(wanted)
    for node in reversed(graph.node):
        if set(node.output) & (needed - set(inputs)):
            kept.insert(0, node)
            needed |= reads(node)
    infos = [each for each in graph.input if each.name in needed]
    ranges = dict(case.ranges)
    for name in inputs:
        if name in needed and name in known and name not in wanted:
            infos.append(_info(name, known[name]))
            ranges[name] = _range(known[name])
    old = {output.name: output for output in graph.output}
    made = [old[n] if n in old else _info(n, known[n]) for n in wanted if n in old or n in known]
    tensors = [each for each in graph.initializer if each.name in needed]
    part = onnx.helper.make_graph(kept, graph.name, infos, made, tensors)
    return replace(case, model=_model_like(model, part), ranges=ranges)


def _model_like(model: onnx.ModelProto, graph: onnx.GraphProto) -> onnx.ModelProto:
    ids = list(model.opset_import)
    return onnx.helper.make_model(graph, opset_imports=ids, ir_version=model.ir_version)


def _info(name: str, arrays: Sequence[Array]) -> onnx.ValueInfoProto:
    first, last = arrays[0], arrays[-1]
    sizes: list[int | str | None] = list(first.shape)
    for axis, (a, b) in enumerate(zip(first.shape, last.shape, strict=True)):
        if a != b:
            sizes[axis] = FREE if (a, b) == DRAWN_SIZES else None
    code = onnx.helper.np_dtype_to_tensor_dtype(first.dtype)
    return onnx.helper.make_tensor_value_info(name, code, sizes)


def _range(arrays: Sequence[Array]) -> Range:
    values = np.concatenate([array.astype(np.float64).reshape(-1) for array in arrays])
    if arrays[0].dtype in FLOATS:
        return Range(0, 2, positive=bool((values > 0).all()))
    return Range(int(values.min()), int(values.max()) + 1)


def _bypassed(case: Case, facts: Mapping[str, Sequence[Array]], index: int) -> Iterator[Case]:
    """The model without a node, whose readers read an input of the same shape instead."""
    node = case.model.graph.node[index]
    output = node.output[0]
    for name in node.input:
        if name not in facts or output not in facts or name == output:
            continue
        a, b = facts[name], facts[output]
        if [x.shape for x in a] != [x.shape for x in b] or a[0].dtype != b[0].dtype:
            continue
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        del model.graph.node[index]
        for reader in model.graph.node:
            for place, read in enumerate(reader.input):
                if read == output:
                    reader.input[place] = name
        if output not in [each.name for each in model.graph.output]:
            yield _with(replace(case, model=model))


def _fixed(case: Case) -> Case:
    """The model with one size of its free batch."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for info in [*model.graph.input, *model.graph.output]:
        for dim in info.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_value = case.sizes[0]
    return replace(case, model=model, sizes=(1,))


def _without_optional(case: Case) -> Iterator[Case]:
    """The model with an attribute or a last input less."""
    for index, node in enumerate(case.model.graph.node):
        for place in range(len(node.attribute)):
            model = onnx.ModelProto()
            model.CopyFrom(case.model)
            del model.graph.node[index].attribute[place]
            yield _with(replace(case, model=model))
        if len(node.input) > 1:
            model = onnx.ModelProto()
            model.CopyFrom(case.model)
            del model.graph.node[index].input[-1]
            yield _with(replace(case, model=model))
