"""Graphs compared on a few samples of a batch: right ones are proved, and all that may be wrong is left to the whole batch."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.checks import pass_proof
from wpk.checks.pass_check import PassComparison, compare_graphs
from wpk.checks.pass_proof import prove_passes
from wpk.checks.samples.batch import Along, Batch, NotAloneError
from wpk.checks.samples.few import KEPT, FewSamples, SomeOf, batch_of
from wpk.checks.scope import Scope
from wpk.dtypes import Precision
from wpk.graph_passes.core.exact import rounded_constant
from wpk.lowering.flat_graph import flatten
from wpk.lowering.model import lower_model
from wpk.plan.plan import Outcome
from wpk.progress import silent

COUNT = 16
TEXT = f"""<ir_version: 8, opset_import: ["": 17]>
m (float[{COUNT},3,4] x) => (float[{COUNT},12] y)
<float[4] c = {{1.5, 2, 0.3, -1}}, int64[2] rows = {{{3 * COUNT}, 4}}, int64[2] flat = {{{COUNT}, 12}}>
{{
    a = Reshape(x, rows)
    b = Mul(a, c)
    t = Reshape(b, flat)
    y = Tanh(t)
}}"""


def graph(text: str = TEXT) -> gs.Graph:
    loaded = gs.import_onnx(onnx.parser.parse_model(text))
    for index, node in enumerate(loaded.nodes):
        node.name = f"{node.op}_{index}"
    return loaded


def drawn(count: int = COUNT) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(0).standard_normal((count, 3, 4)).astype(np.float32)}


def by_few(change: Callable[[gs.Graph], None]) -> PassComparison | None:
    """What is found of few samples; None where all are to be compared."""
    changed, inputs = graph(), drawn()
    change(changed)
    graphs = flatten(graph()), flatten(changed)
    return pass_proof._by_few(*graphs, inputs, None, lambda: None, batch_of(inputs))


def factors(graph: gs.Graph, values: np.ndarray) -> None:
    """Multiply by other numbers."""
    graph.nodes[1].inputs[1] = rounded_constant("other", values, np.float32)


C = np.array([1.5, 2, np.float32(0.3), -1])


def test_a_few_samples_have_what_the_whole_batch_has_of_them() -> None:
    found = by_few(lambda graph: None)
    assert found is not None
    whole = compare_graphs(flatten(graph()), flatten(graph()), drawn())
    assert (found.compared, found.bounded) == (whole.compared, whole.bounded)
    some, every = found.outputs["y"], whole.outputs["y"]
    assert some.array.shape == (KEPT, 12)
    np.testing.assert_array_equal(some.array, every.array[:KEPT])
    np.testing.assert_array_equal(some.like(every.array), some.array)
    np.testing.assert_array_equal(every.like(every.array), every.array)


def test_words_of_all_samples_one_behind_the_other_are_cut_word_by_word() -> None:
    few = FewSamples(Batch(16, 4), {"w": Along(0, 5)})
    words = np.arange(5 * 16 * 2).reshape(80, 2)
    expected = words.reshape(5, 16, 2)[:, :4].reshape(20, 2)
    np.testing.assert_array_equal(few.some("w", expected).like(words), expected)
    assert SomeOf(words).like(words) is words


@pytest.mark.parametrize(
    "change",
    [
        partial(factors, values=C * (1 + 1e-6)),
        lambda graph: setattr(graph.nodes[3], "op", "Erf"),
    ],
)
def test_what_differs_is_left_to_the_whole_batch(change: Callable[[gs.Graph], None]) -> None:
    assert by_few(change) is None


@pytest.mark.parametrize("wrong", [0, COUNT - 1])
def test_numbers_of_their_own_for_each_sample_must_be_the_same(wrong: int) -> None:
    repeated = np.tile(C, (3 * COUNT, 1))
    assert by_few(partial(factors, values=repeated)) is not None
    other = repeated.copy()  # what is computed of an array is remembered by that array
    other[3 * wrong] *= 2
    assert by_few(partial(factors, values=other)) is None


def turned(graph: gs.Graph) -> None:
    """Each sample stands for its neighbour: nothing else of a pass may tell samples apart."""
    old = graph.nodes[3].inputs[0]
    index = gs.Constant("index", np.roll(np.arange(COUNT), 1))
    new = gs.Variable("turned", np.float32, (COUNT, 12))
    graph.nodes[3].inputs[0] = new
    graph.nodes.append(gs.Node("Gather", "turn", {"axis": 0}, [old, index], [new]))
    graph.toposort()


def test_a_graph_that_mixes_samples_is_left_to_the_whole_batch() -> None:
    assert by_few(turned) is None
    changed = graph()
    turned(changed)
    assert compare_graphs(flatten(graph()), flatten(changed), drawn()).differences


def test_samples_must_lie_at_the_same_place_in_both_graphs() -> None:
    one, other = (FewSamples(Batch(16, 4), {"a": Along(axis)}) for axis in (0, 1))
    one.require_alike("a", one, "a")
    with pytest.raises(NotAloneError, match="lie elsewhere"):
        one.require_alike("a", other, "a")


def test_a_batch_is_along_the_first_axis_of_all_inputs_and_worth_it() -> None:
    assert batch_of(drawn(2 * KEPT)) == Batch(2 * KEPT, KEPT)
    assert batch_of(drawn(2 * KEPT - 1)) is None
    assert batch_of({}) is None
    assert batch_of({"x": np.ones(())}) is None
    assert batch_of(drawn(16) | {"z": np.zeros((1, 2))}) is None


def lowered_model(path: Path, count: int = COUNT) -> Path:
    onnx.save(onnx.parser.parse_model(TEXT), path / "model.onnx")
    return path / "model.onnx"


def test_what_a_person_gives_is_proved_in_full(tmp_path: Path) -> None:
    lowered = lower_model(lowered_model(tmp_path), {}, Precision.FP16)
    proof = prove_passes(lowered, Scope(given=[drawn()]), silent)
    ours, given, evaluator = proof.checks
    assert {check.outcome for check in proof.checks} == {Outcome.OK}
    assert ours.detail.endswith("; 4 of 16 samples, which both graphs compute alike")
    assert "samples" not in given.detail
    assert "kinds of nodes agree" in evaluator.detail
    assert [some["y"].array.shape[0] for some in proof.unrounded] == [KEPT, COUNT]


def test_kinds_of_nodes_are_judged_once_where_all_samples_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lowered = lower_model(lowered_model(tmp_path), {}, Precision.FP16)
    few = prove_passes(lowered, Scope(), silent).checks[-1]
    monkeypatch.setattr(pass_proof, "batch_of", lambda inputs: None)
    assert prove_passes(lowered, Scope(), silent).checks[-1] == few
