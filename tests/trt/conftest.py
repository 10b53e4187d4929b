"""Small networks, rewritten by the graph passes, for TensorRT for RTX, whose builder needs no GPU."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.networks import handwritten

from wpk.dtypes import Precision
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model
from wpk.options import TensorRTOptions
from wpk.shape_ranges import SizeRange
from wpk.target_features import TargetFeatures
from wpk.targets import find_target
from wpk.tensorrt import ANY_BATCH, Binding, Request, binding_of, exported

Requested = Callable[..., Request]


@pytest.fixture(scope="session")
def rtx() -> Binding:
    """TensorRT for RTX."""
    reason = "TensorRT for RTX is not installed: pip install tensorrt-rtx"
    return binding_of(pytest.importorskip("tensorrt_rtx", reason=reason), rtx=True)


def lowered(name: str, folder: Path, precision: Precision = Precision.FP32) -> LoweredModel:
    """A handwritten network behind the passes whose graph TensorRT is given."""
    return lower_model(
        handwritten.write(name, folder),
        {},
        precision,
        ("channels-last",),
        features=TargetFeatures(clusters=False),
    )


@pytest.fixture
def requested(tmp_path: Path) -> Requested:
    """What is asked of TensorRT for a handwritten network on an A100."""

    def request(
        name: str,
        precision: str = "fp32",
        target: str = "a100",
        batches: SizeRange = ANY_BATCH,
        **options: object,
    ) -> Request:
        kind = Precision(precision)
        model = exported(lowered(name, tmp_path, kind).graph)
        asked = TensorRTOptions(**options)  # type: ignore[arg-type]
        return Request(model, find_target(target), kind, asked, batches)

    return request
