"""Evaluate the nodes of a graph in float64, each kind of node once by ONNX Runtime, too."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from wpk.checks.float64_nodes import Array, NodeEvaluator
from wpk.checks.second_opinion import Judgement, SecondOpinion, Verdict
from wpk.plan import Check, Outcome


class Evaluation:
    """Evaluates nodes of one graph."""

    def __init__(self, opset: int, opinions: Opinions | None) -> None:
        """Prepare.

        Args:
            opset: Version of ONNX's operators.
            opinions: Told of every node that is evaluated.
        """
        self._opset, self._opinions = opset, opinions
        self._evaluators: dict[str, NodeEvaluator] = {}

    def of(self, node: onnx.NodeProto) -> NodeEvaluator:
        """Return the evaluator of a node, which is known by its first output."""
        name = next(each for each in node.output if each)
        if name not in self._evaluators:
            self._evaluators[name] = NodeEvaluator(node, {"": self._opset})
        return self._evaluators[name]

    def run(self, node: onnx.NodeProto, inputs: Sequence[Array | None]) -> list[Array]:
        """Return the node's outputs in float64; integers and booleans as they are."""
        evaluate = self.of(node)
        if self._opinions is not None:
            self._opinions.ask(node, inputs, evaluate, self._opset)
        return evaluate(inputs)


class Opinions:
    """What ONNX Runtime says of the evaluator, node by node, so that no mistake of it cancels out."""

    def __init__(self) -> None:
        """Begin."""
        self._asked: dict[int, SecondOpinion] = {}
        self._agreed = 0
        self._cannot: dict[str, str] = {}
        self._differs: list[str] = []

    def ask(
        self,
        node: onnx.NodeProto,
        inputs: Sequence[Array | None],
        evaluate: NodeEvaluator,
        opset: int,
    ) -> None:
        """Compare one node with ONNX Runtime, unless a node of its kind has been compared."""
        opinion = self._asked.setdefault(opset, SecondOpinion({"": opset}))
        judgement = opinion.judge(node, inputs, evaluate)
        if judgement is not None:
            self._note(node, judgement)

    def _note(self, node: onnx.NodeProto, judgement: Judgement) -> None:
        match judgement.verdict:
            case Verdict.AGREES:
                self._agreed += 1
            case Verdict.DIFFERS:
                self._differs.append(f"'{node.name}' ({node.op_type}): {judgement.why}")
            case Verdict.CANNOT:
                self._cannot.setdefault(node.op_type, judgement.why)

    def check(self) -> Check:
        """Return the outcome of all comparisons."""
        name = "float64 evaluator beside ONNX Runtime, node by node"
        if self._differs:
            more = f" (and {len(self._differs) - 1} more)" if len(self._differs) > 1 else ""
            return Check(name, Outcome.FAILED, self._differs[0] + more)
        words = f"{self._agreed} kinds of nodes agree"
        if self._cannot:
            words += f"; ONNX Runtime cannot say of {', '.join(sorted(self._cannot))}"
        silent = bool(self._cannot) and not self._agreed
        return Check(name, Outcome.INCONCLUSIVE if silent else Outcome.OK, words)
