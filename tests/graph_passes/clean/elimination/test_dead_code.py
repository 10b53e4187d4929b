"""What nothing reads goes."""

from wpk.graph_passes.clean.elimination.dead_code import DeadCode

H = '<ir_version: 8, opset_import: ["" : 17]>'


def test_removes_dead_chains_and_unread_optional_outputs(prove):
    proof = prove(
        f"""{H} g (float[1, 2, 4, 4] x) => (float[1, 2, 2, 2] y) {{
        a = Neg(x)  b = Relu(a)
        y, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) }}""",
        DeadCode(),
        rewritten=3,
    )
    assert proof.ops == ["MaxPool"]
    assert len(proof.node("MaxPool").outputs) == 1


def test_keeps_all_outputs_of_a_split(load):
    graph = load(f"{H} g (float[4] x) => (float[2] y) {{ y, rest = Split(x) }}")
    assert DeadCode()(graph).rewritten == 0
    assert len(graph.nodes[0].outputs) == 2


def test_removes_unused_functions_and_keeps_those_called_by_functions(load):
    graph = load("""
<ir_version: 8, opset_import: ["" : 17, "wpk" : 1]>
g (float[2] x) => (float[2] y) { y = wpk.outer(x) }
<domain: "wpk", opset_import: ["" : 17]> inner (x) => (y) { y = Relu(x) }
<domain: "wpk", opset_import: ["" : 17, "wpk" : 1]> outer (x) => (y) { y = wpk.inner(x) }
<domain: "wpk", opset_import: ["" : 17]> unused (x) => (y) { y = Neg(x) }
""")
    assert DeadCode()(graph).rewritten == 1
    assert sorted(function.name for function in graph.functions) == ["inner", "outer"]
