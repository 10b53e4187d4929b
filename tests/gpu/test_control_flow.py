"""Control flow whose bodies are engines, on a GPU: each way gives what ONNX Runtime gives."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from support.networks.control_flow_models import DRAWN, KEPT, MODELS, drawn

import wpk

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("name", MODELS)
def test_every_way_gives_what_onnxruntime_gives(name: str, tmp_path: Path) -> None:
    model, plan = tmp_path / "m.onnx", tmp_path / "m.plan"
    onnx.save(MODELS[name](), model)
    how: dict[str, Any] = {"search": "static", "skip_passes": KEPT, "check": "quick"}
    wpk.optimize(model, plan, **how)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    with wpk.load(plan, device="gpu") as engine:
        for seed, way in enumerate(DRAWN[name] * 3):
            inputs = drawn(engine.plan, seed, way)
            expected = dict(zip(names, session.run(names, dict(inputs)), strict=True))
            for given in (engine.run(inputs), _on_the_gpu(engine, inputs)):
                for key, array in expected.items():
                    np.testing.assert_allclose(given[key], array, rtol=1e-5, atol=1e-5)


def _on_the_gpu(engine: Any, inputs: Any) -> dict[str, Any]:
    """What a run on arrays that lie on the GPU gives, asynchronous but for what the host decides."""
    outputs = engine.run(engine.upload(inputs))
    engine.synchronize()
    return {name: array.numpy() for name, array in outputs.items()}
