"""A program's inputs and outputs as a plan describes them, and what may be drawn for its inputs."""

from wpk.dtypes import DType
from wpk.lowering.program import Operator, Program, Value
from wpk.plan import KeptOutput, Port
from wpk.problems import Fallback, Problem

_DRAWN_TURNS = 6
"""More than two: a Loop's states lie in two places that take turns."""


def input_ports(program: Program) -> tuple[Port, ...]:
    """What the caller gives."""
    return tuple(_port(program, name) for name in program.inputs)


def output_ports(program: Program) -> tuple[Port, ...]:
    """What the caller gets."""
    return tuple(_port(program, name) for name in program.outputs)


def kept_outputs(program: Program) -> tuple[KeptOutput, ...]:
    """What the caller gets whose shape only a run decides."""
    return tuple(KeptOutput(name, program.kept[name]) for name in program.kept_outputs)


def _port(program: Program, name: str) -> Port:
    value = program.values[name]
    shape = value.logical_shape
    if value.dtype.is_float or value.dtype.is_fp8:
        return Port(name, value.dtype, shape)
    return Port(name, value.dtype, shape, _draw_below(program, value), _divides(program, value))


def _draw_below(program: Program, value: Value) -> int:
    """The smallest table that an integer input indexes, or few turns of a Loop; 0 if it is neither."""
    sizes = [
        size
        for operator in program.operators
        for index, name in enumerate(operator.inputs)
        if _reads(program, name, value)
        and (
            size := operator.problem.table_size(index)
            or _turns(operator.problem, index)
            or _rows_of_one(program, operator)
        )
    ]
    return min(sizes, default=0)


def _rows_of_one(program: Program, operator: Operator) -> int:
    """Of an operator that makes the index of joined tables: rows of the smallest; 0 of any other."""
    made = program.values.get(operator.outputs[0])
    if made is None:  # a step of ONNX Runtime gives it to the caller
        return 0
    divisors = [operator.inputs[index] for index in operator.problem.divisors()]
    rows = [int(program.constants[each].min()) for each in divisors if each in program.constants]
    is_index = any(
        reader.problem.table_size(index) and _reads(program, name, made)
        for reader in program.operators
        for index, name in enumerate(reader.inputs)
    )
    return min(rows, default=0) if is_index else 0


def _turns(problem: Problem, index: int) -> int:
    """What an input is drawn below that says how often a Loop's body is executed; 0 if it is another."""
    if not isinstance(problem, Fallback) or problem.operators != ("Loop",) or index:
        return 0
    count = problem.x[0]
    is_count = (
        count is not None and count.tensor.dtype is DType.INT64 and count.access.sizes == (1,)
    )
    return _DRAWN_TURNS if is_count else 0


def _divides(program: Program, value: Value) -> bool:
    """Whether something is divided by an integer input: by its elements, or by what is made of them."""
    return any(
        _reads(program, operator.inputs[index], value)
        for operator in program.operators
        for index in operator.problem.divisors()
    )


def _reads(program: Program, name: str, value: Value) -> bool:
    """Whether an operator's input lies where a value does."""
    return name in program.values and program.values[name].buffer == value.buffer
