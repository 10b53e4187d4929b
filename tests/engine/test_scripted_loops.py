"""Loops of real exports as engines: a greedy decoder, a scripted loop over a sequence, a recurrent layer of Scans."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from support.devices.stream_device import Streams
from support.networks.scripted_models import TEXTS, WAYS, drawn_way, scripted_model

import wpk
from wpk.engine import Engine
from wpk.engine.body_call import BodyCall, BoundBody
from wpk.errors import VerificationError
from wpk.plan import PlanBundle
from wpk.plan.control import CONTROL

pytestmark = pytest.mark.usefixtures("one_finalist")


@pytest.fixture(name="plans", scope="module")
def fixture_plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Each model with its plan, unchecked; made when first asked for."""
    return {"": tmp_path_factory.mktemp("scripted")}


def planned(plans: dict[str, Any], name: str) -> tuple[Path, Path, PlanBundle]:
    if name not in plans:
        model, path = (plans[""] / f"{name.replace(' ', '_')}.{end}" for end in ("onnx", "plan"))
        onnx.save(scripted_model(name), model)
        bundle = wpk.optimize(model, path, target="h200", search="static", check="off")
        plans[name] = model, path, bundle
    found: tuple[Path, Path, PlanBundle] = plans[name]
    return found


@pytest.mark.parametrize("name", TEXTS)
def test_every_length_is_right(plans: dict[str, Any], name: str) -> None:
    model, _, bundle = planned(plans, name)
    makers = [s.candidate.maker.name for s in bundle.plan.steps if s.fallback is not None]
    assert set(makers) == {CONTROL.maker.name}
    assert not [s for body in bundle.bodies.values() for s in body.plan.steps if s.fallback]
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    lengths = []
    with Engine(bundle, Streams()) as engine:
        for seed, size in WAYS[name]:
            inputs = drawn_way(name, seed, size)
            given = engine.run(inputs)
            for key, array in zip(names, session.run(names, inputs), strict=True):
                assert (given[key].dtype, given[key].shape) == (array.dtype, array.shape)
                if array.dtype == np.int64:
                    np.testing.assert_array_equal(given[key], array)
                else:
                    np.testing.assert_allclose(given[key], array, rtol=1e-4, atol=1e-5)
            lengths.append(len(given[names[0]]))
    sizes = [size for _, size in WAYS[name]]
    if name == "greedy":  # some end at a token, some at the limit
        assert any(length < size for length, size in zip(lengths, sizes, strict=True))
        assert any(length == size for length, size in zip(lengths, sizes, strict=True))
    else:
        assert lengths == sizes


def test_bodies_need_neither_onnxruntime_nor_the_host_for_an_and(plans: dict[str, Any]) -> None:
    *_, bundle = planned(plans, "greedy")
    (body,) = bundle.bodies.values()
    assert not body.bodies
    assert [each.name for each in bundle.plan.kept_outputs] == ["tokens"]


def test_what_a_sequence_gives_is_known_by_its_length(plans: dict[str, Any]) -> None:
    for name in ("gated", "both ways"):
        *_, bundle = planned(plans, name)
        assert not bundle.plan.kept_outputs
        (ys,) = [port for port in bundle.plan.outputs if port.name == "ys"]
        assert ys.shape[0] == "length"


def test_a_decoder_that_forgets_its_token_is_found(
    plans: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, path, _ = planned(plans, "greedy")
    given = [drawn_way("greedy", *way) for way in WAYS["greedy"][:1]]
    assert wpk.verify(path, model, device="cpu", check="quick", inputs=given).passed
    bound, first = BodyCall.bound, dict[int, int]()

    def stale(call: BodyCall, inputs: Any, outputs: Any) -> BoundBody:
        inputs = inputs | {"ti": first.setdefault(id(call), inputs["ti"])}
        return bound(call, inputs, outputs)

    monkeypatch.setattr(BodyCall, "bound", stale)
    with pytest.raises(VerificationError, match=r"disagree|shape"):
        wpk.verify(path, model, device="cpu", check="quick", inputs=given)
