"""Every form of a model computes what the model computes, however it was come by."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from support.networks.handwritten import BLOCKS, TEXTS, write

from wpk.checks.pass_proof import prove_passes
from wpk.checks.scope import Scope
from wpk.dtypes import Precision
from wpk.errors import GraphError
from wpk.graph_passes import every_site, pass_of
from wpk.graph_passes.products import part_products, patch_products
from wpk.lowering.graph_copy import copied
from wpk.lowering.lowered_model import LoweredModel, Source
from wpk.lowering.model import ModelForms, lower_model
from wpk.problems import Convolution
from wpk.progress import silent

NETWORKS = {
    "dense_concat": {"clamp-before-product", "fuse-operators", "channels-last"},
    "attention_with_mask": {"fuse-operators", "join-siblings", "part-products"},
    "squeeze_excite": {"fuse-operators", "channels-last"},
    "channels_58": {"fuse-operators", "channels-last", "padded-rows"},
}
"""Networks, with the passes that have a choice there."""


def forms_of(path: Path, precision: Precision = Precision.FP16) -> ModelForms:
    return ModelForms(Source(path, {}, precision, ()))


def parts(lowered: LoweredModel) -> tuple[object, ...]:
    program = lowered.program
    constants = {name: array.tobytes() for name, array in program.constants.items()}
    return program.operators, program.values, program.buffers, constants


@pytest.mark.parametrize("name", NETWORKS)
def test_every_form_is_proven_and_the_same_from_a_checkpoint_as_from_the_file(
    name: str, tmp_path: Path
) -> None:
    path = write(name, tmp_path)
    forms = forms_of(path)
    usual = forms.lowered()
    assert {pass_of(site.key) for site in usual.sites} == NETWORKS[name]
    keys = dict.fromkeys(site.key for site in usual.sites)
    whole = dict.fromkeys(every_site(each) for each in NETWORKS[name])
    changed: list[bool] = []  # a cast that is taken back may be read through all the same
    for key in [*keys, *whole]:
        form = forms.lowered(frozenset({key}))
        changed.append(parts(form) != parts(usual))
        assert parts(form) == parts(lower_model(path, {}, Precision.FP16, changed={key})), key
        proof = prove_passes(form, Scope(quick=True, seeds=1), silent)
        assert not any(check.failed for check in proof.checks), (key, proof.checks)
    assert changed[0]
    assert changed[-1]
    assert parts(forms.lowered()) == parts(usual)


def test_of_the_first_form_alone_passes_are_told(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    def tell(stage: str, done: int, total: int, left: float | None = None) -> None:
        del left
        told.append((stage, done, total))

    source = Source(write("dense_concat", tmp_path), {}, Precision.FP16, ())
    forms = ModelForms(source, tell)
    usual = forms.lowered()
    assert {stage for stage, _, _ in told} == {"graph passes"}
    assert told[-1][1] == told[-1][2]
    before = list(told)
    forms.lowered(frozenset({usual.sites[0].key}))
    assert told == before


TWICE = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 8, 6, 5] x, float[8, 8, 1, 1] w, float[8, 8, 1, 1] v) => (float[2, 8, 6, 5] z)
{
    c = Conv(x, w)  r = Relu(c)  d = Conv(x, v)  y = Add(r, d)
    e = Conv(y, w)  s = Relu(e)  f = Conv(y, v)  z = Add(s, f)
}
"""


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """Two equal blocks: of two products the last one adds, by rule; the first might."""
    proto = onnx.parser.parse_model(TWICE)
    rng = np.random.default_rng(0)
    for info in list(proto.graph.input)[1:]:
        weight = rng.standard_normal((8, 8, 1, 1)).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, info.name))
        proto.graph.input.remove(info)
    path = tmp_path / "twice.onnx"
    onnx.save(proto, path)
    return path


def test_equal_places_are_one_decision(twice: Path) -> None:
    usual = forms_of(twice, Precision.FP32).lowered()
    counts = Counter(site.key for site in usual.sites)
    assert {n for key, n in counts.items() if pass_of(key) == "fuse-operators"} == {2}


def test_attention_that_is_taken_back_is_its_parts(tmp_path: Path) -> None:
    forms = forms_of(write("attention_with_mask", tmp_path))
    usual = forms.lowered()
    (joined,) = {s.key for s in usual.sites if "softmax between them" in s.words}
    parted = forms.lowered(frozenset({joined}))
    kinds = [[type(p).__name__ for p in each.program.problems] for each in (usual, parted)]
    assert "Attention" in kinds[0]
    assert "Attention" not in kinds[1]
    assert len(kinds[1]) == len(kinds[0]) + 2


def test_a_residual_that_one_product_does_not_add_is_added_by_another(twice: Path) -> None:
    forms = forms_of(twice, Precision.FP32)
    usual = forms.lowered()
    fusions = [site for site in usual.sites if pass_of(site.key) == "fuse-operators"]
    (adds,) = {site.key for site in fusions if any("Add" in name for name in site.nodes)}
    form = forms.lowered(frozenset({adds}))
    names = [[operator.name for operator in each.program.operators] for each in (usual, form)]
    assert [name.rpartition("_")[0] for name in names[0]] == ["conv_relu", "conv_add"] * 2
    assert sorted(name.rpartition("_")[0] for name in names[1]) == [
        *["conv"] * 2,
        *["conv_relu_add"] * 2,
    ]
    new = {site.key for site in form.sites} - {site.key for site in usual.sites}
    assert new  # the addition is now another product's to give up


QKV = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 5, 8] x, float[8, 24] w) => (float[2, 5, 8] y)
{
    a = MatMul(x, w)  q, k, v = Split<axis = 2>(a)
    p = Mul(q, k)  y = Add(p, v)
}
"""


def test_what_is_done_only_where_it_is_chosen_is_proven_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proto, path = onnx.parser.parse_model(QKV), tmp_path / "qkv.onnx"
    weight = np.random.default_rng(0).standard_normal((8, 24)).astype(np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    proto.graph.input.remove(proto.graph.input[1])
    onnx.save(proto, path)
    scope = Scope(quick=True, seeds=1)
    usual = forms_of(path).lowered()
    changed = frozenset({every_site("part-products")})
    parted = forms_of(path).lowered(changed)
    products = [Counter(p.words() for p in each.program.problems) for each in (usual, parted)]
    assert sum(products[0].values()) == 2
    assert sum(products[1].values()) == 3
    assert not any(check.failed for check in prove_passes(parted, scope, silent).checks)
    part = part_products._part
    monkeypatch.setattr(
        part_products, "_part", lambda *given: part(*given[:-2], given[-2] // 2, given[-1])
    )
    wrong = prove_passes(forms_of(path).lowered(changed), scope, silent)
    (check,) = (each for each in wrong.checks if each.failed)
    assert "part-products" in check.detail


PATCHES = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 3, 16, 12] x, float[16, 3, 4, 6] w) => (float[1, 16, 2, 1] y) {
    a = Conv<strides = [4, 6]>(x, w)  b = Sigmoid(a)  y = Conv<strides = [2, 2]>(b, v)
}
"""


def test_patches_are_rows_or_windows_as_it_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proto, path = onnx.parser.parse_model(PATCHES), tmp_path / "patches.onnx"
    rng = np.random.default_rng(0)
    for name, shape in (("w", (16, 3, 4, 6)), ("v", (16, 16, 2, 2))):
        weight = rng.standard_normal(shape).astype(np.float32)
        proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    proto.graph.input.remove(proto.graph.input[1])
    onnx.save(proto, path)
    scope, forms = Scope(quick=True, seeds=1), forms_of(path)
    convolutions = []
    for names in ([], ["patch-products"], ["other-patch-products"]):
        changed = frozenset(every_site(name) for name in names)
        form = forms.lowered(changed)
        assert parts(form) == parts(lower_model(path, {}, Precision.FP16, changed=changed))
        assert not any(check.failed for check in prove_passes(form, scope, silent).checks)
        kinds = [type(problem) for problem in form.program.problems]
        convolutions.append(kinds.count(Convolution))
    assert convolutions == [1, 2, 0]
    rows = patch_products.moved_constant
    monkeypatch.setattr(
        patch_products,
        "moved_constant",
        lambda name, w, move: rows(name, w, lambda h: move(h[::-1])),
    )
    wrong = prove_passes(forms_of(path).lowered(changed), scope, silent)
    (check,) = (each for each in wrong.checks if each.failed)
    assert "patch-products" in check.detail


def test_a_key_of_no_pass_is_refused(tmp_path: Path) -> None:
    forms = forms_of(write("squeeze_excite", tmp_path))
    with pytest.raises(GraphError, match="no pass is called 'join'"):
        forms.lowered(frozenset({"join:0123"}))


assert set(NETWORKS) <= {*TEXTS, *BLOCKS}


def test_a_copied_graph_has_functions_of_its_own_and_the_other_keeps_its(twice: Path) -> None:
    graph = forms_of(twice).lowered(frozenset()).graph
    before = list(graph.functions)
    made = copied(copied(graph))
    assert len(before) > 1
    assert graph.functions == before
    assert all(a is b for a, b in zip(graph.functions, before, strict=True))
    assert [each.name for each in made.functions] == [each.name for each in before]
    assert {id(each) for each in made.functions}.isdisjoint(map(id, before))
    names = [[node.name for node in each.nodes] for each in made.functions]
    assert names == [[node.name for node in each.nodes] for each in before]
    gs.export_onnx(made)  # each function is there once
    assert len({each.name for each in made.functions}) == len(before)
