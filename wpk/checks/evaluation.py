"""Evaluate the nodes of a graph in float64, each kind of node once by ONNX Runtime, too."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from wpk.checks.float64_nodes import Array, NodeEvaluator
from wpk.checks.runtime_nodes import RuntimeEvaluator, narrowed
from wpk.checks.samples.few import FewSamples
from wpk.checks.second_opinion import Judgement, SecondOpinion, Verdict, why_undecidable
from wpk.closed_models import subgraphs, walk
from wpk.errors import EngineError
from wpk.graph_passes import RANDOM_OPS
from wpk.plan import Check, Outcome

_TRAINING = 2
"""The input of Dropout that says whether it drops."""

_LONGEST = 200
"""Characters of a message that are passed on."""


class EvaluationError(EngineError):
    """Neither onnx's reference nor ONNX Runtime executes a node on these inputs."""


def draws(node: onnx.NodeProto) -> bool:
    """Tell whether a node, or one of its subgraphs, draws random numbers."""
    inner = (each for graph in subgraphs(node) for each in walk(graph))
    return any(each.op_type in RANDOM_OPS or _trains(each) for each in (node, *inner))


def _trains(node: onnx.NodeProto) -> bool:
    """Whether a Dropout may drop: it is told whether it trains."""
    return node.op_type == "Dropout" and len(node.input) > _TRAINING and bool(node.input[_TRAINING])


class Evaluation:
    """Evaluates nodes of one graph.

    Attributes:
        by_runtime: Why ONNX Runtime evaluated kinds of nodes, which onnx's reference does not execute.
        few: Follows the few samples that stand for a batch; None where the whole batch is evaluated.
    """

    def __init__(
        self, opset: int, opinions: Opinions | None, few: FewSamples | None = None
    ) -> None:
        """Prepare.

        Args:
            opset: Version of ONNX's operators.
            opinions: Told of every node that is evaluated.
            few: Follows the few samples that inputs have, if they have not all.
        """
        self._opset, self._opinions, self.few = opset, opinions, few
        self._evaluators: dict[str, NodeEvaluator] = {}
        self.by_runtime: dict[str, str] = {}

    def of(self, node: onnx.NodeProto) -> NodeEvaluator:
        """Return the evaluator of a node, which is known by its first output."""
        name = next(each for each in node.output if each)
        if name not in self._evaluators:
            try:
                self._evaluators[name] = NodeEvaluator(node, {"": self._opset})
            except (
                Exception
            ) as error:  # of any operator that onnx implements in Python, or does not
                self._hand_over(node, error)
        return self._evaluators[name]

    def run(self, node: onnx.NodeProto, inputs: Sequence[Array | None]) -> list[Array]:
        """Return the node's outputs in float64; integers and booleans as they are.

        Raises:
            EvaluationError: Nobody executes it on these inputs.
            NotAloneError: Inputs have a few samples of a batch, and the node may mix them or tell them apart.
        """
        if self.few is not None:
            inputs = self.few.way(node, inputs).operands(inputs)
        evaluate = self.of(node)
        if not isinstance(evaluate, RuntimeEvaluator):
            try:
                found = evaluate(inputs)
            except Exception as error:  # as above
                self._hand_over(node, error)
            else:
                if self._opinions is not None:
                    self._opinions.ask(node, inputs, evaluate, self._opset)
                return found
        return self._by_runtime(node, inputs)

    def _by_runtime(self, node: onnx.NodeProto, inputs: Sequence[Array | None]) -> list[Array]:
        narrow = [None if each is None else narrowed(each) for each in inputs]
        reason = why_undecidable(node, narrow)
        try:
            if reason is None:
                return self.of(node)(inputs)
        except Exception as error:  # onnxruntime's exceptions share no base class
            reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise EvaluationError(
            f"nobody executes '{node.name}' ({node.op_type}) on these inputs: onnx's reference says "
            f"{self.by_runtime.get(node.op_type, 'nothing')}; ONNX Runtime: {reason}"[:500],
            fix="give inputs that the model is made for: --inputs X.npz",
        )

    def _hand_over(self, node: onnx.NodeProto, error: Exception) -> None:
        """Have ONNX Runtime evaluate a node from now on."""
        name = next(each for each in node.output if each)
        self._evaluators[name] = RuntimeEvaluator(node, self._opset)
        words = next(iter(str(error).splitlines()), "")
        self.by_runtime.setdefault(node.op_type, f"{type(error).__name__}: {words}"[:_LONGEST])
        if self._opinions is not None:
            self._opinions.note_alone(node.op_type)


class Opinions:
    """What ONNX Runtime says of the evaluator, node by node, so that no mistake of it cancels out."""

    def __init__(self) -> None:
        """Begin."""
        self._asked: dict[int, SecondOpinion] = {}
        self._agreed = 0
        self._cannot: dict[str, str] = {}
        self._differs: list[str] = []
        self._alone: dict[str, None] = {}

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

    def note_alone(self, op_type: str) -> None:
        """Note that onnx's reference does not execute an operator: nothing can be compared."""
        self._alone[op_type] = None

    def check(self) -> Check:
        """Return the outcome of all comparisons."""
        name = "float64 evaluator beside ONNX Runtime, node by node"
        if self._differs:
            more = f" (and {len(self._differs) - 1} more)" if len(self._differs) > 1 else ""
            return Check(name, Outcome.FAILED, self._differs[0] + more)
        words = f"{self._agreed} kinds of nodes agree"
        if self._cannot:
            words += f"; ONNX Runtime cannot say of {', '.join(sorted(self._cannot))}"
        if self._alone:
            words += f"; ONNX Runtime alone executes {', '.join(sorted(self._alone))}"
        silent = bool(self._cannot) and not self._agreed
        return Check(name, Outcome.INCONCLUSIVE if silent else Outcome.OK, words)
