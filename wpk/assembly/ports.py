"""A program's inputs and outputs as a plan describes them, and what may be drawn for its inputs."""

from collections.abc import Iterator

from wpk.expression import Apply, Expression, Operand, Round, leaves
from wpk.lowering.program import Program, Value
from wpk.plan import Port
from wpk.problems import Elementwise, Gather


def input_ports(program: Program) -> tuple[Port, ...]:
    """What the caller gives."""
    return tuple(_port(program, name) for name in program.inputs)


def output_ports(program: Program) -> tuple[Port, ...]:
    """What the caller gets."""
    return tuple(_port(program, name) for name in program.outputs)


def _port(program: Program, name: str) -> Port:
    value = program.values[name]
    first = (value.leading.expression,) if value.logical_shape else ()
    shape = (*first, *value.logical_shape[1:])
    if value.dtype.is_float:
        return Port(name, value.dtype, shape)
    return Port(name, value.dtype, shape, _draw_below(program, value), _divides(program, value))


def _draw_below(program: Program, value: Value) -> int:
    """The smallest table that an integer input indexes; 0 if it indexes none."""
    sizes = [
        operator.problem.axis_size
        for operator in program.operators
        if isinstance(operator.problem, Gather) and _reads(program, operator.inputs[1], value)
    ]
    return min(sizes, default=0)


def _divides(program: Program, value: Value) -> bool:
    """Whether something is divided by an integer input: by its elements, or by what is made of them."""
    return any(
        _reads(program, operator.inputs[index], value)
        for operator in program.operators
        if isinstance(operator.problem, Elementwise)
        for index in _divisors(operator.problem.expression)
    )


def _reads(program: Program, name: str, value: Value) -> bool:
    """Whether an operator's input lies where a value does."""
    return name in program.values and program.values[name].buffer == value.buffer


def _divisors(expression: Expression) -> Iterator[int]:
    """Operands that something is divided by."""
    match expression:
        case Apply(operation, arguments):
            if operation in ("Div", "Mod"):
                own = leaves(arguments[1])
                yield from (leaf.index for leaf in own if isinstance(leaf, Operand))
            for argument in arguments:
                yield from _divisors(argument)
        case Round(_, argument):
            yield from _divisors(argument)
