"""Read element-wise arithmetic as a polynomial, so that a formula is known in every spelling.

Exporters write 0.5 * x * (1 + erf(x / sqrt 2)) in a dozen orders. As a polynomial in x and
E = erf(...) all of them are 0.5 x + 0.5 x E, and its argument is 0.7071 x.
"""

from collections.abc import Iterator, Mapping

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import close, is_op, producer, uniform

# Coefficient of each monomial x**i * e**j, keyed by (i, j).
Polynomial = dict[tuple[int, int], float]

ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Pow", "Neg")
# GELU's cube is the highest power of any formula recognised; the margin is for intermediates.
_MAX_DEGREE = 6
# 0.5 * x * (1 + tanh(k * (x + c * x**3))) with every constant apart is eight deep.
_MAX_DEPTH = 8


def as_polynomial(
    tensor: gs.Tensor, x: gs.Tensor, e: gs.Tensor | None = None, depth: int = _MAX_DEPTH
) -> Polynomial | None:
    """Read ``tensor`` as a polynomial in ``x`` and ``e``; None when it is none.

    Only constants with one value for all elements count as coefficients.
    """
    if tensor is x:
        return {(1, 0): 1.0}
    if e is not None and tensor is e:
        return {(0, 1): 1.0}
    if isinstance(tensor, gs.Constant):
        value = uniform(tensor)
        return None if value is None else {(0, 0): value}
    node = producer(tensor)
    if node is None or depth == 0 or not is_op(node, *ARITHMETIC):
        return None
    operands = [as_polynomial(operand, x, e, depth - 1) for operand in node.inputs]
    known = [operand for operand in operands if operand is not None]
    return _combine(node.op, known) if len(known) == len(operands) else None


def _combine(op: str, operands: list[Polynomial]) -> Polynomial | None:
    left = operands[0]
    if op == "Neg":
        return _scaled(left, -1.0)
    right = operands[1]
    if op == "Add":
        return _sum(left, right)
    if op == "Sub":
        return _sum(left, _scaled(right, -1.0))
    if op == "Mul":
        return _product(left, right)
    if set(right) != {(0, 0)}:
        return None
    value = right[(0, 0)]
    if op == "Div":
        return _scaled(left, 1.0 / value) if value else None
    return _power(left, value)


def _scaled(a: Polynomial, factor: float) -> Polynomial:
    return {monomial: factor * value for monomial, value in a.items()}


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    return {m: a.get(m, 0.0) + b.get(m, 0.0) for m in {**a, **b}}


def _product(a: Polynomial, b: Polynomial) -> Polynomial | None:
    product: Polynomial = {}
    for (i, j), left in a.items():
        for (k, m), right in b.items():
            if i + k > _MAX_DEGREE or j + m > _MAX_DEGREE:
                return None
            product[i + k, j + m] = product.get((i + k, j + m), 0.0) + left * right
    return product


def _power(a: Polynomial, exponent: float) -> Polynomial | None:
    if exponent != int(exponent) or not 1 <= exponent <= _MAX_DEGREE:
        return None
    power: Polynomial | None = a
    for _ in range(int(exponent) - 1):
        power = None if power is None else _product(power, a)
    return power


def matches(
    polynomial: Polynomial | None, expected: Mapping[tuple[int, int], float], relative: float
) -> bool:
    """Whether all coefficients are the expected ones up to ``relative``, and no other is there."""
    if polynomial is None:
        return False
    if any(not close(polynomial.get(m), value, relative) for m, value in expected.items()):
        return False
    return all(value == 0.0 for m, value in polynomial.items() if m not in expected)


def arithmetic_sources(tensor: gs.Tensor) -> list[gs.Tensor]:
    """Return ``tensor`` and what arithmetic made it from, nearest first: candidates for x."""
    found = [tensor]
    frontier = [tensor]
    for _ in range(_MAX_DEPTH):
        frontier = [
            operand
            for t in frontier
            if is_op(producer(t), *ARITHMETIC)
            for operand in t.inputs[0].inputs
            if not isinstance(operand, gs.Constant)
        ]
        frontier = list({id(t): t for t in frontier}.values())
        found += [t for t in frontier if not any(t is seen for seen in found)]
    return found


def arithmetic_results(tensor: gs.Tensor) -> Iterator[gs.Tensor]:
    """Yield ``tensor`` and what arithmetic makes from it, farthest last: candidates for a root."""
    frontier = [tensor]
    for _ in range(_MAX_DEPTH):
        yield from frontier
        frontier = [
            output
            for t in frontier
            for reader in t.outputs
            if is_op(reader, *ARITHMETIC)
            for output in reader.outputs
        ]
        frontier = list({id(t): t for t in frontier}.values())


def interior(root: gs.Tensor, x: gs.Tensor, extra: gs.Node | None = None) -> list[gs.Node]:
    """Return the nodes between ``x`` and ``root``, passing through arithmetic and ``extra``."""
    nodes: dict[int, gs.Node] = {}
    waiting = [root]
    while waiting:
        tensor = waiting.pop()
        node = producer(tensor)
        if tensor is x or node is None or id(node) in nodes:
            continue
        if node is extra or is_op(node, *ARITHMETIC):
            nodes[id(node)] = node
            waiting.extend(node.inputs)
    return list(nodes.values())


def why_read_elsewhere(graph: gs.Graph, nodes: list[gs.Node], root: gs.Tensor) -> str | None:
    """Say which result inside a pattern is needed outside it, so that it would not go away."""
    inside = {id(node) for node in nodes}
    for node in nodes:
        for tensor in node.outputs:
            if tensor is root:
                continue
            if any(output is tensor for output in graph.outputs):
                return f"'{tensor.name}' inside the pattern is a graph output"
            if any(id(reader) not in inside for reader in tensor.outputs):
                return f"'{tensor.name}' inside the pattern is read elsewhere"
    return None
