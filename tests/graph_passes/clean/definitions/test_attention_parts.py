"""ONNX's Attention becomes products and a softmax, or says why not."""

import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.clean.definitions.attention_parts import AttentionParts
from wpk.graph_passes.fusion.fuse_operators import FuseOperators
from wpk.graph_passes.fusion.grouped_heads import GroupedHeads

H = '<ir_version: 10, opset_import: ["" : 23]>'
SPLIT = "float[N, 3, 5, 8] q, float[N, 3, 7, 8] k, float[N, 3, 7, 4] v"
FLAT = "float[N, 5, 24] q, float[N, 7, 24] k, float[N, 7, 12] v"


def attention(attributes: str, inputs: str, result: str, mask: str = "") -> str:
    operands = f"q, k, v{', mask' if mask else ''}"
    given = f", {mask} mask" if mask else ""
    return f"{H} g ({inputs}{given}) => ({result} y) {{ y = Attention{attributes}({operands}) }}"


CASES = {
    "split heads": attention("", SPLIT, "float[N, 3, 5, 4]"),
    "a hidden dimension": attention("<q_num_heads = 3, kv_num_heads = 3>", FLAT, "float[N, 5, 12]"),
    "scale": attention("<scale = 0.5>", SPLIT, "float[N, 3, 5, 4]"),
    "softcap": attention("<softcap = 2.0>", SPLIT, "float[N, 3, 5, 4]"),
    "causal": attention("<is_causal = 1>", SPLIT, "float[N, 3, 5, 4]"),
    "a mask that is added": attention("", SPLIT, "float[N, 3, 5, 4]", "float[5, 7]"),
    "a mask and causal": attention("<is_causal = 1>", SPLIT, "float[N, 3, 5, 4]", "float[5, 7]"),
}


@pytest.mark.parametrize("shape", ["split", "flat"])
def test_heads_that_share_keys_are_joined_again(prove, shape):
    inputs = {
        "split": "float[N, 6, 5, 8] q, float[N, 2, 7, 8] k, float[N, 2, 7, 4] v",
        "flat": "float[N, 5, 48] q, float[N, 7, 16] k, float[N, 7, 8] v",
    }[shape]
    attributes = "" if shape == "split" else "<q_num_heads = 6, kv_num_heads = 2>"
    result = "float[N, 6, 5, 4]" if shape == "split" else "float[N, 5, 24]"
    text = attention(attributes, inputs, result, "float[5, 7]")
    proof = prove(text, AttentionParts(), batches=(1, 3))
    assert proof.ops.count("Expand") == 2
    run_passes(proof.graph, [GroupedHeads()])
    run_passes(proof.graph, [FuseOperators()])
    assert [n.op for n in proof.graph.nodes if n.domain == "wpk"] == ["attention_0"]
    assert "Expand" not in [node.op for node in proof.graph.nodes]


@pytest.mark.parametrize("case", CASES)
def test_gives_the_same_numbers_and_is_joined_again(prove, case):
    proof = prove(CASES[case], AttentionParts(), batches=(1, 3))
    assert "Attention" not in proof.ops
    run_passes(proof.graph, [FuseOperators()])
    assert [node.op for node in proof.graph.nodes] == ["attention_0"]


def test_a_boolean_mask_chooses(prove):
    text = attention("", SPLIT, "float[N, 3, 5, 4]", "float[5, 7]").replace(
        "Attention(q, k, v, mask)", "Attention(q, k, v, seen)"
    )
    text = text.replace("{ y =", "<float zero = {0}> { seen = Less(mask, zero)  y =")
    proof = prove(text, AttentionParts(), batches=(2,))
    assert proof.ops.count("Where") == 2
    assert "Attention" not in proof.ops


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            attention("<q_num_heads = 4, kv_num_heads = 3>", FLAT, "float[N, 5, 16]"),
            "4 heads of queries share 3 of keys and 3 of values",
        ),
        (
            attention("<softcap = 2.0>", SPLIT, "float[N, 3, 5, 4]", "float[5, 7]"),
            "runtimes do not agree",
        ),
        (
            attention("<is_causal = 1>", SPLIT, "float[N, 3, 5, 4]").replace("float[", "bfloat16["),
            "'q' has a type that NumPy lacks",
        ),
        (attention("", SPLIT.replace("5", "S"), "float[N, 3, S, 4]"), "all but the batch"),
        (
            attention("", SPLIT, "float[N, 3, 5, 4]")
            .replace(
                "=> (float[N, 3, 5, 4] y)",
                "=> (float[N, 3, 5, 4] y, float[N, 3, 7, 8] a, float[N, 3, 7, 4] b)",
            )
            .replace("y = ", "y, a, b = "),
            "more than its result",
        ),
    ],
)
def test_says_why_it_stays(refusals, text, reason):
    (found,) = refusals(text, AttentionParts())
    assert reason in found
