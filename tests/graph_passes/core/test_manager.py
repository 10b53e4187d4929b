"""Groups run to a fixpoint, keep records, and know their names."""

import onnx_graphsurgeon as gs
import pytest

from wpk.errors import GraphError
from wpk.graph_passes import run_passes
from wpk.graph_passes.catalogue import simplifying_passes
from wpk.graph_passes.clean.elimination.identity_elimination import IdentityElimination
from wpk.graph_passes.core import GraphPass, PassResult
from wpk.graph_passes.core.manager import MAX_ROUNDS
from wpk.graph_passes.movement.chains.reshape_chains import ReshapeChains

TURNS = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3, 4] x) => (float[2, 3, 4] y) {
   a = Transpose <perm = [1, 2, 0]> (x)
   b = Transpose <perm = [1, 2, 0]> (a)
   c = Transpose <perm = [1, 2, 0]> (b)
   y = Relu(c)
}"""


class _Restless(GraphPass):
    name = "restless"

    def apply(self, graph: gs.Graph) -> PassResult:
        return PassResult(rewritten=1)


def test_passes_enable_each_other_until_nothing_is_left_to_do(load):
    graph = load(TURNS)
    records = run_passes(graph, [IdentityElimination(), ReshapeChains()])
    assert [node.op for node in graph.nodes] == ["Relu"]
    assert [record.rewritten for record in records] == [1, 2]


def test_reports_progress_after_each_pass(load):
    seen = []
    run_passes(load(TURNS), [ReshapeChains()], progress=lambda *event: seen.append(event))
    assert seen == [("reshape-chains", 1, 2), ("reshape-chains", 2, 0)]


def test_skipped_passes_do_nothing_and_say_so(load):
    graph = load(TURNS)
    records = run_passes(graph, [ReshapeChains()], skip={"reshape-chains"})
    assert len(graph.nodes) == 4
    assert records[0].skipped


def test_unknown_names_are_refused_with_the_known_ones(load):
    with pytest.raises(GraphError, match="no pass is called 'reshape-chain'") as caught:
        run_passes(load(TURNS), [ReshapeChains()], skip={"reshape-chain"})
    assert caught.value.fix == "did you mean 'reshape-chains'? there is only reshape-chains"


def test_names_of_other_groups_may_be_skipped(load):
    run_passes(load(TURNS), [ReshapeChains()], skip={"layout"}, other_passes={"layout"})


def test_passes_that_never_settle_are_named(load):
    message = f"passes still rewrite after {MAX_ROUNDS} rounds: restless"
    with pytest.raises(GraphError, match=message):
        run_passes(load(TURNS), [_Restless()])


def test_the_catalogue_has_unique_kebab_case_names():
    names = [each.name for each in simplifying_passes()]
    assert len(set(names)) == len(names)
    assert all(name == name.lower() and " " not in name and "_" not in name for name in names)


class _Broaden(GraphPass):
    name = "broaden"

    def apply(self, graph: gs.Graph) -> PassResult:
        (node,) = [node for node in graph.nodes if node.attrs.get("perm") == [1, 2, 0]][:1]
        node.attrs["perm"] = [2, 1, 0]
        return PassResult(rewritten=1)


def test_names_the_pass_that_gives_a_tensor_another_shape(load):
    words = r"tensor 'a' has shape \(4, 3, 2\) after pass broaden, had \(3, 4, 2\) before it"
    with pytest.raises(GraphError, match=words):
        run_passes(load(TURNS), [_Broaden()])


class _Counts(GraphPass):
    """Finds nothing, and notes how many nodes it saw each time."""

    name = "counts"

    def __init__(self) -> None:
        self.seen: list[int] = []

    def apply(self, graph: gs.Graph) -> PassResult:
        self.seen.append(len(graph.nodes))
        return PassResult()


def test_a_pass_that_found_nothing_rests_until_the_graph_changes(load):
    before, behind, told = _Counts(), _Counts(), []
    before.name = "before"
    passes = [before, ReshapeChains(), behind]
    run_passes(load(TURNS), passes, progress=lambda *event: told.append(event))
    assert before.seen == [4, 2]
    assert behind.seen == [2]
    assert told[3:] == [("before", 2, 0), ("reshape-chains", 2, 0), ("counts", 2, 0)]
