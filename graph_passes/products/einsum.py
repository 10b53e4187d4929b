"""Write an Einsum of one or two operands as transposes, a product of matrices and a sum.

    Einsum("bij,bjk->bik", a, b)    ->  MatMul(a, b)
    Einsum("bhid,bhjd->bhij", q, k) ->  MatMul(q, Transpose(k))
    Einsum("ij->ji", a)             ->  Transpose(a)
    Einsum("bii->bi", a)            ->  Slice of every (i + 1)th element of rows of i * i
    Einsum("...ij,jk->...ik", a, b) ->  as with a letter of its own for each axis that the ellipsis stands for

The letters of two operands are put into four groups: those of both and of the result (the batch), those of
one operand alone (rows, columns), and those that are summed. Each operand becomes (batch, its own,
summed): the letters of the batch stay axes, so that split heads stay views, and each other group becomes one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from string import ascii_letters
from typing import Any, ClassVar

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.kinds import is_floating
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import rank, static_shape


@dataclass(frozen=True)
class _Equation:
    """An Einsum with its letters.

    Attributes:
        node: The node.
        terms: The letters of each operand.
        result: The letters of the result.
        sizes: The size of each letter.
    """

    node: gs.Node
    terms: list[str]
    result: str
    sizes: dict[str, int]


class EinsumParts(Rule[_Equation]):
    """Replace an Einsum of known sizes whose letters stand at most twice in each term, and once in the result."""

    name = "einsum-parts"
    ops: ClassVar = ("Einsum",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Equation | Refusal:
        """Read the equation."""
        del graph
        text = node.attrs["equation"]
        text = (text.decode() if isinstance(text, bytes) else str(text)).replace(" ", "")
        left, arrow, right = text.partition("->")
        terms = left.split(",")
        if not arrow:
            letters = sorted(set(left) - {","})
            once = "".join(n for n in letters if left.count(n) == 1 and n != ".")
            right = f"{'...' if '...' in left else ''}{once}"
        terms, right = _with_letters(node, terms, right)
        reason = _why_not(node, terms, right)
        if reason is not None:
            return Refusal(node.name, reason)
        sizes: dict[str, int] = {}
        for term, tensor in zip(terms, node.inputs, strict=True):
            for letter, size in zip(term, static_shape(tensor) or [], strict=True):
                if sizes.setdefault(letter, size) != size:
                    return Refusal(
                        node.name, f"letter '{letter}' has sizes {sizes[letter]} and {size}"
                    )
        return _Equation(node, terms, right, sizes)

    def rewrite(self, editor: GraphEditor, match: _Equation) -> None:
        """Write the product, or the sum and the transpose of a single operand."""
        parts = _Parts(editor, match)
        operands = []
        for place, (term, tensor) in enumerate(zip(match.terms, match.node.inputs, strict=True)):
            operands.append(parts.summed(*parts.diagonal(tensor, term), _own_alone(match, place)))
        made, letters = operands[0] if len(operands) == 1 else parts.product(*operands)
        made = parts.ordered(made, letters, match.result)
        output = match.node.outputs[0]
        if made is match.node.inputs[0]:
            made = editor.add("Identity", [made], like=output)
        editor.replace(output, made)


def _with_letters(node: gs.Node, terms: list[str], right: str) -> tuple[list[str], str]:
    """The terms and the result with letters in place of ellipses, whose axes are counted from the last."""
    ranks = [rank(tensor) for tensor in node.inputs]
    if "." not in "".join(terms) or len(ranks) != len(terms) or None in ranks:
        return terms, right
    counts = [
        (size or 0) - len(term.replace("...", "")) if "..." in term else 0
        for term, size in zip(terms, ranks, strict=True)
    ]
    free = [letter for letter in ascii_letters if letter not in "".join(terms)]
    if min(counts) < 0 or max(counts) > len(free):
        return terms, right
    axes = "".join(free[: max(counts)])
    pairs = zip(terms, counts, strict=True)
    named = [term.replace("...", axes[len(axes) - count :]) for term, count in pairs]
    return named, right.replace("...", axes)


def _why_not(node: gs.Node, terms: Sequence[str], right: str) -> str | None:
    if len(terms) != len(node.inputs) or len(terms) > 2:
        return f"it has {len(node.inputs)} operands"
    if any("." in term for term in (*terms, right)):
        return "its equation has an ellipsis for axes of unknown number"
    if any(term.count(letter) > 2 for term in terms for letter in term):
        return "a letter stands three times in a term"
    if len(set(right)) != len(right):
        return "a letter stands twice in its result"
    for term, tensor in zip(terms, node.inputs, strict=True):
        shape = static_shape(tensor)
        if shape is None or not is_floating(tensor):
            return f"the shape or type of '{tensor.name}' is not known, or no floating point number"
        if len(shape) != len(term):
            return f"'{term}' has {len(term)} letters, '{tensor.name}' has {len(shape)} axes"
    if not set(right) <= set("".join(terms)):
        return "its result has a letter that no operand has"
    return None


def _own_alone(equation: _Equation, place: int) -> str:
    """The letters that only one operand has and that are summed."""
    others = "".join(t for i, t in enumerate(equation.terms) if i != place) + equation.result
    letters = dict.fromkeys(equation.terms[place])
    return "".join(letter for letter in letters if letter not in others)


class _Parts(NodeParts):
    """Adds the nodes that stand for one Einsum."""

    def __init__(self, editor: GraphEditor, equation: _Equation) -> None:
        super().__init__(editor, equation.node)
        self.equation = equation

    def diagonal(self, x: gs.Tensor, term: str) -> tuple[gs.Tensor, str]:
        """An operand with each of its letters once: where two axes have one, their diagonal."""
        for letter in [each for each in dict.fromkeys(term) if term.count(each) == 2]:
            first, second = term.index(letter), term.rindex(letter)
            rest = [axis for axis in range(len(term)) if axis not in (first, second)]
            size, left = self._size(letter), "".join(term[axis] for axis in rest)
            if rest != list(range(len(rest))):
                x = self.transposed(x, [*rest, first, second])
            flat = self.reshaped(x, [*self._sizes(left), size * size])
            bounds = [[0], [size * size], [len(rest)], [size + 1]]
            x = self._made("Slice", flat, *map(self.ints, bounds), letters=left + letter)
            term = left + letter
        return x, term

    def summed(self, x: gs.Tensor, term: str, letters: str) -> tuple[gs.Tensor, str]:
        """An operand without letters that it sums by itself."""
        if not letters:
            return x, term
        left = "".join(letter for letter in term if letter not in letters)
        axes = [term.index(letter) for letter in letters]
        if self.editor.graph.opset < 13:
            return self._made("ReduceSum", x, letters=left, axes=axes, keepdims=0), left
        return self._made("ReduceSum", x, self.ints(axes), letters=left, keepdims=0), left

    def product(
        self, one: tuple[gs.Tensor, str], other: tuple[gs.Tensor, str]
    ) -> tuple[gs.Tensor, str]:
        """The product of two operands, and its letters."""
        (a, left), (b, right) = one, other
        result = self.equation.result
        batch = "".join(n for n in result if n in left and n in right)
        rows = "".join(n for n in result if n in left and n not in right)
        columns = "".join(n for n in result if n in right and n not in left)
        inner = "".join(n for n in left if n in right and n not in result)
        x = self._grouped(a, left, (*batch, rows, inner))
        y = self._grouped(b, right, (*batch, inner, columns))
        sizes = [self._size(group) for group in (*batch, rows, columns)]
        whole = self.add("MatMul", x, y, shape=list(sizes))
        letters = batch + rows + columns
        return self._seen(whole, self._sizes(letters)), letters

    def ordered(self, x: gs.Tensor, letters: str, wanted: str) -> gs.Tensor:
        """The same letters in the order of the result."""
        if letters == wanted:
            return x
        return self.transposed(x, [letters.index(letter) for letter in wanted])

    def _grouped(self, x: gs.Tensor, letters: str, groups: Sequence[str]) -> gs.Tensor:
        turned = self.ordered(x, letters, "".join(groups))
        return self._seen(turned, [self._size(group) for group in groups])

    def _seen(self, x: gs.Tensor, sizes: list[int]) -> gs.Tensor:
        return x if list(x.shape) == sizes else self.reshaped(x, sizes)

    def _sizes(self, letters: str) -> list[int]:
        return [self.equation.sizes[letter] for letter in letters]

    def _size(self, letters: str) -> int:
        return prod(self._sizes(letters))

    def _made(self, op: str, *inputs: gs.Tensor, letters: str, **attributes: Any) -> gs.Tensor:
        """Add a node whose result has these letters."""
        return self.add(op, *inputs, shape=list(self._sizes(letters)), **attributes)
