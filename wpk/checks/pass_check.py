"""Compare what graph passes made of a model with the model, in float64, on one input.

A tensor that both graphs have must have one value. So the rewritten graph is evaluated beside the
original, and wherever it makes a tensor that the original has (inside the bodies of its operators,
too) the two are compared; then it goes on with the original's value. That cuts it into regions, each
fed with the original's values and compared with the original nodes that it replaces, and no region
can hide the error of another. Nothing is rounded: constants that passes computed are exact here
(`wpk.graph_passes.core.exact`). So equal means equal in float64: to some roundings of 2^-53 where nothing
cancels, else within what the arithmetic of the *original's* nodes lets them differ by. What the
rewritten graph computes never enters a limit.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from wpk.blocks import by_blocks
from wpk.checks.bounded import KERNELS, Arithmetic, Floats
from wpk.checks.compare import same_numbers
from wpk.checks.evaluation import Evaluation, Opinions, draws
from wpk.checks.float64_nodes import Array, widened
from wpk.checks.graph_ports import faults_of_ports, fixed_tensors
from wpk.checks.original_values import ALGEBRA, OriginalValues
from wpk.checks.samples.batch import Batch
from wpk.checks.samples.few import FewSamples, SomeOf
from wpk.checks.unchanged import UnchangedNodes
from wpk.checks.unmoved import moving_tensors
from wpk.dtypes import is_float
from wpk.lowering.flat_graph import FlatGraph, FlatNode, read_names

NEAR = 2.0**-40
"""Difference, relative to an element and to the RMS of its tensor, below which two float64 results
are equal without asking what their arithmetic allows; no more of the element itself than `ITSELF` either."""

ITSELF = 2.0**-24
"""The same, relative to the element alone: a number for what is masked makes the RMS of its tensor as large as it is."""


@dataclass(frozen=True)
class Difference:
    """A tensor whose value differs in the rewritten graph.

    Attributes:
        tensor: Its name in the original graph.
        operator: The rewritten graph's node that makes it.
        nodes: The original's nodes that it stands for.
        detail: How it differs, in words.
    """

    tensor: str
    operator: str
    nodes: tuple[str, ...]
    detail: str

    def __str__(self) -> str:
        """Say what differs, where, and by how much."""
        shown = ", ".join(f"'{name}'" for name in self.nodes[:4])
        more = f" and {len(self.nodes) - 4} more" if len(self.nodes) > 4 else ""
        of = f", of {shown}{more}" if self.nodes else ""
        return f"tensor '{self.tensor}' made by '{self.operator}'{of}: {self.detail}"


@dataclass
class PassComparison:
    """What comparing two graphs found.

    Attributes:
        compared: Tensors compared.
        bounded: How many of them were judged by what their arithmetic allows.
        differences: Those that differ, in the order of the rewritten graph.
        outputs: The rewritten graph's outputs in float64, nothing rounded; of a few samples where no more were compared.
    """

    compared: int = 0
    bounded: int = 0
    differences: list[Difference] = field(default_factory=list)
    outputs: dict[str, SomeOf] = field(default_factory=dict)


def compare_graphs(
    original: FlatGraph,
    rewritten: FlatGraph,
    inputs: Mapping[str, Array],
    opinions: Opinions | None = None,
    tell: Callable[[], None] = lambda: None,
    batch: Batch | None = None,
) -> PassComparison:
    """Evaluate both graphs on ``inputs`` and compare all tensors that both have.

    Args:
        original: The graph as loaded.
        rewritten: After passes, with the same inputs and outputs.
        inputs: The inputs by name.
        opinions: Told of every node that is evaluated.
        tell: Called before every node of the rewritten graph.
        batch: Samples of which a few stand for all; without it all are compared.

    Raises:
        EvaluationError: Nobody executes a node.
        NotAloneError: A few samples do not stand for all.
    """
    return _Walk(original, rewritten, inputs, opinions, batch).compare(tell)


class _Walk:
    """The rewritten graph on its way through its nodes.

    Attributes:
        values: Its tensors but for constants: the original's values where they are right.
        roots: For each tensor the original's tensors that it was made from, given their values.
        judged: Tensors that were compared with the original's of the same name.
        last_readers: Place of the last node that reads a tensor; of an output, behind all nodes.
        unjudged: How many nodes are still to make what the original calls so.
        unchanged: Tells which nodes are the original's.
        few: Follows the few samples through the rewritten graph; None where all are compared.
        its_few: The same in the original graph.
    """

    def __init__(
        self,
        original: FlatGraph,
        rewritten: FlatGraph,
        inputs: Mapping[str, Array],
        opinions: Opinions | None,
        batch: Batch | None = None,
    ) -> None:
        self.rewritten = rewritten
        self.few = self.its_few = None
        if batch is not None:
            self.few, self.its_few = FewSamples(batch), FewSamples(batch)
            self.few.begin(inputs)
            inputs = self.its_few.begin(inputs)
        known = {name for node in rewritten.nodes for name in node.known_as if name}
        self.shared = original.makers.keys() & (
            known | set(rewritten.constants) | set(rewritten.outputs)
        )
        self.constants = original.constants
        self.original = OriginalValues(original, inputs, opinions, self.its_few)
        self.values: dict[str, Array] = {n: widened(a) for n, a in inputs.items()}
        self.nodes = Evaluation(rewritten.opset, opinions, self.few)
        self.roots: dict[str, frozenset[str]] = dict.fromkeys(inputs, frozenset())
        self.unchanged = UnchangedNodes(original, self.original.value, rewritten)
        self.last_readers = {
            name: place
            for place, node in enumerate(rewritten.nodes)
            for name in read_names(node.proto)
        } | dict.fromkeys(rewritten.outputs, len(rewritten.nodes))
        self.unjudged = Counter(name for node in rewritten.nodes for name in set(node.known_as))
        self.judged: set[str] = set()
        self.found = PassComparison()
        fixed = (f for f in fixed_tensors(original, rewritten) if self._moves(original, f.tensor))
        for name, operator, words in (*faults_of_ports(original, rewritten), *fixed):
            self.found.differences.append(Difference(name, operator, (), words))

    def _moves(self, original: FlatGraph, name: str) -> bool:
        """Whether the original computes a tensor that has elements from those of inputs, and not of such as have none."""
        if self.original.value(name).size == 0:
            return False
        part = replace(original, nodes=tuple(self.original.region(name, ())))
        return name in moving_tensors(part, lambda each: self.original.value(each).size == 0)

    def compare(self, tell: Callable[[], None]) -> PassComparison:
        for name, constant in self.rewritten.constants.items():
            self._constant(name, constant)
        for place, node in enumerate(self.rewritten.nodes):
            tell()
            self._step(node)
            self._release(place)
        for name in self.rewritten.outputs:
            value = self._value(name)
            if name in self.shared and name not in self.judged:
                self._judge(name, name, value, ALGEBRA, self.roots[name])
            some = SomeOf(value) if self.few is None else self.few.some(name, value)
            self.found.outputs[name] = some
        return self.found

    def _constant(self, name: str, value: Array) -> None:
        """Judge a constant: the original's own, or what it computes from constants in its own types."""
        self.roots[name] = frozenset()
        if name in self.shared:
            self.judged.add(name)
            self.roots[name] = frozenset([name])
            self._judge(name, "a constant", widened(value), KERNELS)
            self.original.settle(name, value)
            self.unchanged.names[name] = name
        elif name in self.constants and value is not self.constants[name]:
            self._judge(name, "a constant", widened(value), None)

    def _held(self, name: str) -> Array:
        """Return a tensor, a constant in its own type."""
        constant = self.rewritten.constants.get(name)
        return self.values[name] if constant is None else constant

    def _value(self, name: str) -> Array:
        """Return a tensor in float64; constants are widened for each reader, for they may be large."""
        constant = self.rewritten.constants.get(name)
        return self.values[name] if constant is None else widened(constant)

    def _step(self, node: FlatNode) -> None:
        results = self._results(node)
        roots = [self.roots.get(name, frozenset()) for name in read_names(node.proto)]
        names = [n for n in zip(node.proto.output, node.known_as, strict=True) if n[0]]
        for (name, known_as), value in zip(names, results, strict=False):
            self.values[name], self.roots[name] = value, frozenset[str]().union(*roots)
            if known_as not in self.shared:
                continue
            self._require_alike(name, known_as)
            if name == known_as:
                self.judged.add(name)
            if self._judge(known_as, node.operator, value, ALGEBRA, self.roots[name]):
                self._go_on_with(name, known_as)
        self.unchanged.add_constant(node.proto, self.values)

    def _results(self, node: FlatNode) -> list[Array]:
        """What a node makes: what the original's makes, where it is the same node of the same values."""
        names = read_names(node.proto)
        if all(name in self.shared for name in node.known_as if name) and self.unchanged.has(node):
            if self.few is not None:
                self.few.way(node.proto, [self._held(name) if name else None for name in names])
            return [self.original.value(name) for name in node.known_as if name]
        given = [self._value(name) if name else None for name in names]
        results = self.nodes.run(node.proto, given)
        if names and results[0] is given[0] and names[0] in self.unchanged.names:  # a cast
            self.unchanged.names[node.proto.output[0]] = self.unchanged.names[names[0]]
        return results

    def _go_on_with(self, name: str, known_as: str) -> None:
        """Go on with the original's value of a tensor."""
        self.values[name] = self.original.value(known_as)
        self.roots[name] = frozenset([known_as])
        self.unchanged.names[name] = known_as

    def _require_alike(self, name: str, known_as: str) -> None:
        """Check that a tensor holds the same samples in both graphs."""
        if self.few is not None and self.its_few is not None:
            self.original.value(known_as)
            self.few.require_alike(name, self.its_few, known_as)

    def _release(self, place: int) -> None:
        """Let go of the memory of what no node behind a place reads, in both graphs."""
        node = self.rewritten.nodes[place]
        for name in {*read_names(node.proto), *node.proto.output} & self.values.keys():
            if self.last_readers.get(name, -1) <= place:
                del self.values[name]
        self.unjudged.subtract(set(node.known_as))
        roots = set[str]().union(*(self.roots[name] for name in self.values))
        self.original.release(lambda name: self.unjudged[name] > 0 or name in roots)

    def _judge(
        self,
        name: str,
        operator: str,
        value: Array,
        arithmetic: Arithmetic | None,
        cut: frozenset[str] = frozenset(),
    ) -> bool:
        """Whether a tensor is what the original says.

        ``arithmetic`` is that of the original; None for a constant, which must be equal to the bit, as must be what is
        made of numbers that are drawn. The tensor was made from the original's tensors in ``cut``, at their values.
        """
        self.found.compared += 1
        right = self.original.value(name)
        if _near(value, right):
            return True
        self.found.bounded += 1
        region = self.original.region(name, cut)
        allowed: Floats = np.zeros(())
        if arithmetic is not None and not any(draws(node.proto) for node in region):
            allowed = self.original.allowed(name, arithmetic, cut)
        wrong = _difference(value, right, allowed)
        if wrong is not None:
            nodes = tuple(node.operator for node in region)
            self.found.differences.append(Difference(name, operator, nodes, wrong))
        return wrong is None


def _near(value: Array, right: Array) -> bool:
    """Whether two tensors are equal without asking for bounds; integers and booleans exactly."""
    if value is right:
        return True
    if value.shape != right.shape or value.dtype != right.dtype or value.size == 0:
        return value.shape == right.shape and value.dtype == right.dtype
    if not is_float(value.dtype) or not is_float(right.dtype):
        return bool(same_numbers(value, right).all())
    y, ref = (np.asarray(each, np.float64).reshape(-1) for each in (value, right))
    with np.errstate(all="ignore"):
        power = sum(by_blocks(ref.size, lambda at: float((ref[at] ** 2).sum())))
        limit = NEAR * np.sqrt(power / ref.size)

        def fits(at: slice) -> bool:
            apart = np.abs(y[at] - ref[at])
            return bool(apart.max() <= limit and (apart <= ITSELF * np.abs(ref[at])).all())

        return bool(np.isfinite(limit)) and all(by_blocks(ref.size, fits))


def _difference(value: Array, right: Array, allowed: Floats) -> str | None:
    """How a value differs from the right one by more than is allowed; None where it does not."""
    if value.shape != right.shape:
        return f"its shape is {list(value.shape)}, the model's {list(right.shape)}"
    if value.dtype != right.dtype:
        return f"its type is {value.dtype}, the model's {right.dtype}"
    flat, other = value.reshape(-1), right.reshape(-1)
    bounds = np.broadcast_to(allowed, right.shape)
    limits = bounds.reshape(-1)

    def judge(at: slice) -> tuple[int, int]:
        """How many elements differ, and the first that does."""
        wrong = _differs(flat[at], other[at], limits[at])
        return int(np.count_nonzero(wrong)), at.start + int(np.argmax(wrong))

    found = [each for each in by_blocks(flat.size, judge) if each[0]]
    if not found:
        return None
    place = tuple(int(i) for i in np.unravel_index(found[0][1], right.shape))
    limit = bounds[place] + (NEAR * abs(float(right[place])) if is_float(right.dtype) else 0.0)
    return (
        f"{sum(count for count, _ in found)} of {flat.size} elements differ; {list(place)} is "
        f"{float(value[place]):.9g}, the model's {float(right[place]):.9g}, allowed difference "
        f"{limit:.1e}"
    )


def _differs(value: Array, right: Array, allowed: Floats) -> NDArray[np.bool_]:
    """Which elements differ by more than is allowed."""
    y, ref = np.asarray(value, np.float64), np.asarray(right, np.float64)
    with np.errstate(all="ignore"):
        same = (value == right) | (np.isnan(y) & np.isnan(ref))
        limit = allowed + (NEAR * np.abs(ref) if is_float(right.dtype) else 0.0)
        apart = np.abs(y - ref)
        differs: NDArray[np.bool_] = ~same & (
            (limit == 0.0) | ~(apart <= limit) | (apart == np.inf)
        )  # float64 has not all integers
    return differs
