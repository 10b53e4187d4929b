"""An odd case is made from nothing but a problem: random operands, each in memory of its own, and the reference."""

import numpy as np
from numpy.typing import NDArray

from wpk.checks import Allowance, Reference
from wpk.extent import Extent
from wpk.libraries import random_case
from wpk.lowering.program import Buffer, Operator, Program, Value
from wpk.problems import Access, Problem
from wpk.strided import strided
from wpk.trial_bench.cases import Case

_OUTPUT = "y"
_SEED = 0


def odd_case(problem: Problem) -> Case | None:
    """Return a problem alone, as a program of one operator; None where the reference cannot judge a result.

    It cannot where the epilogue is not a number for random operands, or for those nearby.
    """
    with np.errstate(all="ignore"):  # what is not finite is seen in the next line
        drawn = random_case(problem, _SEED)
    results = ((drawn.output, drawn.allowed), *drawn.beside)
    if not all(np.isfinite(allowed).all() for _, allowed in results):
        return None
    inputs, outputs = problem.reads(), problem.writes()
    written = tuple(_OUTPUT + "_" * index for index in range(len(outputs)))
    names = tuple(f"x{index}" for index in range(len(inputs)))
    given = dict(zip(names, drawn.operands, strict=True))
    leading = problem.leading
    values = {
        name: _value(name, access, given[name].shape, leading)
        for index, (name, access) in enumerate(zip(names, inputs, strict=True))
        if access is not None
        and not access.tensor.constant
        and index not in problem.constant_inputs
    }
    for name, access, (exact, _) in zip(written, outputs, results, strict=True):
        values[name] = _value(name, access, exact.shape, leading)
    constants = {
        name: _laid_out(access, given[name])
        if access is not None and access.tensor.constant
        else given[name]
        for name, access in zip(names, inputs, strict=True)
        if name not in values
    }
    program = Program(
        inputs=tuple(name for name in names if name in values),
        outputs=written,
        values=values,
        constants=constants,
        buffers={name: Buffer(name, value.span()) for name, value in values.items()},
        operators=(Operator("odd shape", (), problem, names, written, call=_OUTPUT),),
        free=_free(leading),
    )
    memory = {name: array for name, array in given.items() if name in values}
    right, allowed = (
        dict(zip(written, [each[part] for each in results], strict=True)) for part in (0, 1)
    )
    tolerances = {name: Allowance.known(each) for name, each in allowed.items()}
    result = Reference(_OUTPUT, right, tolerances)
    return Case(program, memory, result)


def _laid_out(access: Access, array: NDArray[np.generic]) -> NDArray[np.generic]:
    """A constant's memory: its elements where the problem's strides have them."""
    tensor = access.tensor
    memory = np.zeros(access.span_bytes({}) // tensor.dtype.bytes + tensor.padding, array.dtype)
    strides = [step * memory.itemsize for step in tensor.strides]
    strided(memory, array.shape, strides)[...] = array
    return memory


def _value(name: str, access: Access, shape: tuple[int, ...], leading: Extent) -> Value:
    """A tensor in a buffer of its own; what comes before a free extent is single, and left out."""
    tensor = access.tensor
    free = (axis for axis, extent in enumerate(access.extents) if not isinstance(extent, int))
    first = next(free, 0)
    kept = shape[first:]
    own = Extent(kept[0]) if kept[0] != leading.value else leading
    return Value(
        name=name,
        dtype=tensor.dtype,
        leading=own,
        shape=kept,
        strides=tuple(tensor.strides[first:]),
        padding=tensor.padding,
        buffer=name,
        offset=0,
        logical_shape=(own.expression, *kept[1:]),
    )


def _free(leading: Extent) -> dict[str, int]:
    first, *others = leading.names or ("",)
    sizes = {**dict.fromkeys(others, 1), first: leading.value // leading.factor}
    return sizes if leading.names else {}
