"""The kept list of exported graphs: whole, described, and a sample of it through wpk."""

import json
from pathlib import Path

import exporter_study
import numpy as np
import onnx
import pytest
from exporters import catalogue, judging, store
from exporters.architecture import EXPORTERS, SIZES, Export
from exporters.inputs import draw_arrays

WITH_FALLBACK = "hf_clip.dynamo.batch"  # which compares every text of the batch with every image
SAMPLE = ("rnn_bag.script.fixed", "sk_logistic.sklearn.batch")
SAMPLE_OF_WEIGHTS = "hf_bert.dynamo.batch"
LARGEST_ARCHIVE = 3_000_000


def test_the_archive_holds_the_kept_list() -> None:
    kept = [str(each) for each in catalogue.kept()]
    assert len(set(kept)) == len(kept) >= 60
    assert store.names() == sorted(kept)
    assert store.ARCHIVE.stat().st_size < LARGEST_ARCHIVE


def test_the_list_is_of_all_families_exporters_and_batches() -> None:
    known, kept = catalogue.architectures(), catalogue.kept()
    families = {known[each.name].family for each in kept}
    assert families == {"torchvision", "transformers", "timm", "torch", "sklearn"}
    kinds = {known[each.name].kind for each in kept if known[each.name].family == "torchvision"}
    assert kinds >= {"classification", "detection", "segmentation", "video"}
    for exporter in EXPORTERS:
        batches = {each.free for each in kept if each.exporter == exporter}
        assert batches == {(), ("batch",)}


def test_a_seed_draws_what_is_not_kept() -> None:
    drawn = catalogue.drawn(1)
    assert drawn == catalogue.drawn(1) != catalogue.drawn(2)
    assert not {each.name for each in drawn} & {each.name for each in catalogue.kept()}
    assert len(drawn) >= 100
    known = catalogue.architectures()
    families = {known[each.name].family for each in drawn}
    assert {known[each.name].family for each in drawn[: len(families)]} == families


def test_the_archive_of_drawn_graphs_holds_what_the_seed_draws() -> None:
    order = [str(each) for each in catalogue.drawn(20261125)]
    names = sorted(store.names(store.DRAWN), key=order.index)
    assert len(names) == 21
    last = order.index(names[-1])
    assert last < 30  # but for a few that no exporter can write
    assert names == [each for each in order[: last + 1] if each in names]


@pytest.mark.parametrize(
    ("archive", "output", "least"),
    [(store.ARCHIVE, "exporters.json", 60), (store.DRAWN, "exporters-drawn.json", 20)],
)
def test_the_records_say_of_each_graph_that_it_is_as_it_must_be(
    archive: Path, output: str, least: int
) -> None:
    rows = json.loads((exporter_study.OUTPUT.parent / output).read_text())["rows"]
    assert set(rows) <= set(store.names(archive))
    assert len(rows) >= least
    wrong = [name for name, row in rows.items() if not exporter_study.is_as_it_must_be(row)]
    assert not wrong


@pytest.mark.parametrize("name", store.names())
def test_a_name_says_how_a_graph_was_exported(name: str) -> None:
    assert str(Export.parse(name)) == name


def test_weights_come_from_the_seed_and_their_names() -> None:
    models = [store.read(SAMPLE_OF_WEIGHTS, seed)[0] for seed in (0, 0, 1)]
    first, again, other = (
        {t.name: onnx.numpy_helper.to_array(t) for t in m.graph.initializer} for m in models
    )
    _, facts = store.read(SAMPLE_OF_WEIGHTS)
    onnx.checker.check_model(models[0], full_check=True)
    for name, (shape, dtype, mean, deviation, least, largest) in facts.emptied.items():
        values = first[name]
        assert (list(values.shape), str(values.dtype)) == (shape, dtype)
        np.testing.assert_array_equal(values, again[name])
        assert (values != other[name]).any()
        assert least <= values.min() <= values.max() <= largest
        assert abs(values.mean() - mean) <= 6 * deviation / values.size**0.5  # or one in 10^9 fails


def test_what_is_emptied_is_drawn_again_as_it_was_distributed() -> None:
    weights = np.random.default_rng(0).normal(3, 2, (50, 40)).astype(np.float32)
    mask = np.where(np.eye(8) > 0, 0, -np.inf).astype(np.float32)
    constants = {"w": weights, "mask": mask, "index": np.arange(100), "scale": np.ones(3)}
    model = onnx.ModelProto()
    for name, array in constants.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    stripped, emptied = store.emptied(model)
    assert list(emptied) == ["w"]
    facts = store.Facts("torch", "encoder", (), {}, emptied)
    drawn = store.refilled(stripped, facts, seed=0)
    found = {t.name: onnx.numpy_helper.to_array(t) for t in drawn.graph.initializer}
    assert abs(found["w"].mean() - 3) < 0.3
    assert abs(found["w"].std() - 2) < 0.2
    for name in ("mask", "index", "scale"):
        np.testing.assert_array_equal(found[name], constants[name])


def test_a_convolutions_weights_are_no_larger_than_a_network_bears() -> None:
    model = onnx.ModelProto()
    for name, scale in (("small", 0.1), ("large", 9.0)):
        weights = np.random.default_rng(0).normal(0, scale, (64, 6, 3, 3)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    _, emptied = store.emptied(model)
    assert emptied["small"][3] == pytest.approx(0.1, rel=0.05)
    assert emptied["large"][3] == pytest.approx((store.LARGEST_VARIANCE / 54) ** 0.5, rel=1e-4)


def test_masks_end_each_sentence_at_a_place_of_its_own() -> None:
    _, facts = store.read(SAMPLE_OF_WEIGHTS)
    drawn = draw_arrays(facts.inputs, {**SIZES, "batch": 64}, 0)
    mask = drawn["mask"]
    assert (np.diff(mask) <= 0).all()
    assert mask[:, 0].all()
    assert len(set(mask.sum(-1))) > 6


@pytest.mark.usefixtures("one_cubin")
@pytest.mark.parametrize(
    "name", [*SAMPLE, pytest.param(WITH_FALLBACK, marks=pytest.mark.exhaustive)]
)
def test_an_engine_is_right(name: str, tmp_path: Path) -> None:
    record = judging.judge(name, store.ARCHIVE, tmp_path, seed=3, finalists=1)
    assert record["outcome"] == "right", record
    assert record["error"] <= record["allowed"] < 2 * judging.ALLOWED
    assert record["decided"] == 1
    assert bool(record["fallback"]) == (name == WITH_FALLBACK)


def test_a_wrong_engine_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = judging.wpk.engine.Engine.run

    def wrong(self, *arguments, **keywords):
        found = run(self, *arguments, **keywords)
        return {name: array + array.dtype.type(1) for name, array in found.items()}

    monkeypatch.setattr(judging.wpk.engine.Engine, "run", wrong)
    record = judging.judge("sk_perceptron.sklearn.batch", store.ARCHIVE, tmp_path, finalists=1)
    assert record["outcome"] in ("wrong", "alarm")


@pytest.mark.parametrize(
    ("found", "right", "moved", "is_right"),
    [
        ([1.0, -1.0], [1.0, -1.0], [1.0, -1.0], True),
        ([1.0, -1.001], [1.0, -1.0], [1.0, -1.0], False),
        ([1.0, -1.001], [1.0, -1.0], [1.0, -1.0005], True),  # rounding moves it that far
        ([1.001, -1.0], [1.0, -1.0], [1.0, -1.0005], False),  # and not this one
        ([1.0, np.nan], [1.0, -1.0], [1.0, -1.0], False),
        ([1.0], [1.0, -1.0], [1.0, -1.0], False),
        ([1, 2], [1, 2], [1, 2], True),
        ([1, 3], [1, 2], [1, 2], False),
        ([1, 3], [1, 2], [1, 4], True),  # a tie
    ],
)
def test_differences_are_judged(found, right, moved, is_right: bool) -> None:
    found, right, moved = map(np.array, (found, right, moved))
    assert (judging.difference(found, right, [right, moved]).excess <= 1) is is_right


def test_what_rounding_decides_proves_nothing() -> None:
    right = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert judging.difference(right, right, [right, right[::-1]]).decided == 0
    assert judging.difference(right, right, [right[:1]]).decided == 0
    assert judging.difference(right, right, [right]).decided == 1


def _record(kind: str, outcome: str, fallback: list[str]) -> dict[str, object]:
    counts = {"nodes": 10, "kernels": 4, "fallback": fallback, "seconds": 1.0}
    return {"family": "torch", "kind": kind, "outcome": outcome, **counts}


@pytest.mark.parametrize(
    ("record", "good"),
    [
        (_record("classification", "right", []), True),
        (_record("classification", "right", ["Shape"]), False),
        (_record("encoder", "right", ["Shape"]), False),
        (_record("detection", "right", ["NonZero"]), True),
        (_record("detection", "wrong", []), False),
        (_record("detection", "refused", []), False),
    ],
)
def test_what_must_be(record, good: bool) -> None:
    assert exporter_study.is_as_it_must_be(record) is good


def test_a_child_that_dies_is_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "r.json"
    monkeypatch.setattr(exporter_study, "MEMORY_BYTES", 1 << 20)
    arguments = ["exporter_study", "--only", "sk_p[ce]*", "--output", str(output)]
    monkeypatch.setattr(exporter_study.sys, "argv", arguments)
    assert exporter_study.main() == 1
    rows = json.loads(output.read_text())["rows"]
    assert {row["outcome"] for row in rows.values()} == {"crashed"}
    assert len(rows) == 2
    page = output.with_suffix(".md").read_text()
    assert "2 graphs: 2 crashed" in page
    assert "| sk_pca.sklearn.batch | table |" in page
