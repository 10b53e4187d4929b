"""PyTorch's graphs beside a device's own: the stream they run on, what they compute, their times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from rows.side_by_side import time_starts
from rows.torch_baselines import EAGER, MODES, TorchGraph, be_strict, in_float64
from rows.tuned import Case

from wpk.backends import open_gpu
from wpk.checks.limits import LIMITS
from wpk.checks.model_check import output_error
from wpk.device import CudaDevice
from wpk.dtypes import Precision

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]  # PyTorch's own


@pytest.fixture(name="torch")
def fixture_torch() -> Any:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch sees no GPU")
    return torch


@pytest.fixture(name="device")
def fixture_device(torch: Any) -> Iterator[CudaDevice]:
    del torch  # asked for first: it skips
    with open_gpu() as device:
        yield device


def network(torch: Any) -> tuple[Any, Any]:
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(64, 64, 3, padding=1) for _ in range(3)]
    module = torch.nn.Sequential(*(part for each in layers for part in (each, torch.nn.ReLU())))
    return module.eval(), torch.randn(2, 64, 28, 28)


@pytest.mark.slow
@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16])
@pytest.mark.parametrize("way", MODES)
def test_a_captured_module_computes_what_it_is(
    torch: Any, device: CudaDevice, way: str, precision: Precision
) -> None:
    module, inputs = network(torch)
    (right,) = in_float64(module, [inputs], "cuda")
    be_strict()
    graph = TorchGraph(module, [inputs], way, Case("resnet18", precision, 2), device.stream)
    (output,) = graph.outputs()
    error = output_error(output, right)
    limit = LIMITS[precision]
    assert error.median <= limit.median
    assert error.worst <= limit.worst
    assert next(module.parameters()).dtype == torch.float32


@pytest.mark.timed
def test_more_work_takes_longer_on_the_devices_stream(torch: Any, device: CudaDevice) -> None:
    module, inputs = network(torch)
    be_strict()
    case = Case("resnet18", Precision.FP32, 2)
    graphs = {
        name: TorchGraph(given, [inputs], EAGER, case, device.stream)
        for name, given in (
            ("once", module),
            ("six times", torch.nn.Sequential(*([module] * 6))),
        )
    }
    times = time_starts(device, graphs)
    ratio = times["six times"].median / times["once"].median
    assert 3.0 < ratio < 9.0
    assert np.isfinite(graphs["once"].outputs()[0]).all()
