"""Prove a pass: what it rewrites, that it keeps the numbers, and that it then has nothing to do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import onnxruntime
import pytest
from support.networks.drawn_weights import parse_model

from wpk.graph_passes import infer_shapes, run_passes
from wpk.graph_passes.core import GraphPass, PassResult

UNIT_ROUNDOFF = 2.0**-24


def load(text: str, constants: str = "", seed: int = 0) -> gs.Graph:
    """Parse ONNX text, its ``constants`` drawn (`drawn_weights`), into a graph with names."""
    graph = gs.import_onnx(parse_model(text, constants, seed))
    for index, node in enumerate(graph.nodes):
        node.name = node.name or f"{node.op}_{index}"
    infer_shapes(graph)
    return graph


def export(graph: gs.Graph) -> onnx.ModelProto:
    """Export and check; the IR version is one that onnxruntime reads."""
    model = gs.export_onnx(graph)
    model.ir_version = max(model.ir_version, 8) if model.ir_version <= 10 else 10
    onnx.checker.check_model(model, full_check=True)
    return model


def random_inputs(graph: gs.Graph, seed: int, batch: int) -> dict[str, np.ndarray]:
    """Draw the graph's inputs; free dimensions become ``batch``, integers lie in 0..3."""
    rng = np.random.default_rng(seed)
    feeds = {}
    for tensor in graph.inputs:
        shape = [dim if isinstance(dim, int) else batch for dim in tensor.shape]
        if np.issubdtype(tensor.dtype, np.floating):
            feeds[tensor.name] = rng.standard_normal(shape).astype(tensor.dtype)
        else:
            feeds[tensor.name] = rng.integers(0, 4, shape).astype(tensor.dtype)
    return feeds


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Run with onnxruntime, without any optimisation of its own."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return session.run(None, feeds)


@dataclass
class Proof:
    """What a pass did to a graph."""

    graph: gs.Graph
    result: PassResult
    ops: list[str] = field(init=False)

    def __post_init__(self) -> None:
        """Note the operators that are left, in order."""
        self.ops = [node.op for node in self.graph.nodes]

    def node(self, op: str) -> gs.Node:
        """Return the only node of operator ``op``."""
        (node,) = [node for node in self.graph.nodes if node.op == op]
        return node


def prove(
    text: str,
    each: GraphPass,
    *,
    constants: str = "",
    rewritten: int = 1,
    terms: int = 64,
    batches: Sequence[int] = (2,),
    settle: bool = False,
) -> Proof:
    """Run ``each`` once, compare with onnxruntime before and after, and run it a second time.

    Args:
        text: The model as ONNX text.
        each: The pass.
        constants: Inputs to turn into random weights.
        rewritten: Rewrites expected of the first run.
        terms: Length of the longest sum in the model. Two evaluations in float32 of a sum of K
            terms differ by less than 2 K u of the sum of magnitudes (Higham, eq. 3.5), which the
            largest output times 4 stands for here (inputs are standard normal).
        batches: Values of free dimensions to compare at.
        settle: Whether later rounds may still rewrite, as for pairs of a longer chain.
    """
    before = load(text, constants)
    after = load(text, constants)
    names = [[t.name for t in tensors] for tensors in (after.inputs, after.outputs)]
    result = each(after)
    assert result.rewritten == rewritten, [refusal.reason for refusal in result.refusals]
    infer_shapes(after)
    if settle:
        run_passes(after, [each])
    second = each(after)
    assert second.rewritten == 0
    assert names == [[t.name for t in tensors] for tensors in (after.inputs, after.outputs)]
    _compare(before, after, terms, batches)
    return Proof(after, result)


def _compare(before: gs.Graph, after: gs.Graph, terms: int, batches: Sequence[int]) -> None:
    old_model, new_model = export(before), export(after)
    for batch in batches:
        feeds = random_inputs(before, seed=1, batch=batch)
        for old, new in zip(run(old_model, feeds), run(new_model, feeds), strict=True):
            largest = np.abs(old[np.isfinite(old)]).max(initial=0.0) if old.size else 0.0
            bound = 2 * terms * UNIT_ROUNDOFF * 4 * float(largest)
            assert old.shape == new.shape
            assert old.dtype == new.dtype
            np.testing.assert_allclose(new, old, rtol=0.0, atol=bound)


def refusals(text: str, each: GraphPass, constants: str = "") -> list[str]:
    """Run ``each`` on a graph that it must leave alone; return its reasons."""
    graph = load(text, constants)
    ops = sorted(node.op for node in graph.nodes)
    result = each(graph)
    assert result.rewritten == 0
    assert sorted(node.op for node in graph.nodes) == ops
    return [refusal.reason for refusal in result.refusals]


@pytest.fixture(name="prove")
def prove_fixture() -> Callable[..., Proof]:
    """Give `prove` to tests."""
    return prove


@pytest.fixture(name="refusals")
def refusals_fixture() -> Callable[..., list[str]]:
    """Give `refusals` to tests."""
    return refusals


@pytest.fixture(name="load")
def load_fixture() -> Callable[..., gs.Graph]:
    """Give `load` to tests."""
    return load


@pytest.fixture(name="export")
def export_fixture() -> Callable[..., onnx.ModelProto]:
    """Give `export` to tests."""
    return export


@pytest.fixture(name="run_model")
def run_fixture() -> Callable[..., list[np.ndarray]]:
    """Give `run` to tests."""
    return run
