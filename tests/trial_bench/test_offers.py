"""Libraries are asked in the background, and one that crashes costs the answer to one problem."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.devices import numpy_child
from support.devices.numpy_child import NumpyProcess
from support.problems.warpgroup_layers import convolution

from wpk.dtypes import Precision
from wpk.errors import EngineError
from wpk.libraries import asked_libraries
from wpk.trial_bench.gpu_lease import GpuLease
from wpk.trial_bench.offers import Offers

ANSWERED = [convolution(precision=precision) for precision in (Precision.BF16, Precision.TF32)]
CRASHES = convolution(precision=Precision.FP16)


def test_a_crash_costs_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(numpy_child.__file__).parents[2]))
    first, second = ANSWERED
    with GpuLease(NumpyProcess) as lease, Offers(lease, [first, CRASHES, second]) as offers:
        answers = [offers.of(each) for each in (first, CRASHES, second)]
    assert [len(each) for each in answers] == [len(asked_libraries())] * 3
    found, lost = [each[0].configurations for each in answers], answers[1][0]
    assert found == [((("engine", 7),),), (), ((("engine", 7),),)]
    assert lost.refusals == (
        "asked what it offers, the process of the GPU died in offer (status 11)",
    )


def test_without_a_gpu_there_are_no_answers() -> None:
    def no_gpu() -> NumpyProcess:
        raise EngineError("no NVIDIA driver", fix="install it")

    with (
        GpuLease(no_gpu) as lease,
        Offers(lease, ANSWERED) as offers,
        pytest.raises(EngineError, match="no NVIDIA driver"),
    ):
        offers.of(ANSWERED[0])
