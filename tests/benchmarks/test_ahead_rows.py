"""What is timed with and without asking early: legal kernels, two codes of each, and a chain that is right."""

from __future__ import annotations

import numpy as np
import pytest
from rows.ahead import CONSTANTS, NOTHING, VARIANTS, subjects, variants
from subjects.cold_chain import ColdChain

from wpk.build import load_nvrtc
from wpk.emulator import GUARDED, Emulator
from wpk.execution import KernelImage
from wpk.kernel_source import KernelSource
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target

H100 = find_target("h100")


@pytest.mark.parametrize("name", subjects())
def test_schedules_are_legal_and_biases_constant(name: str) -> None:
    subject = subjects()[name]
    template = TEMPLATE_OF[subject.template]
    assert template.why_illegal(subject.problem, subject.schedule, H100) is None
    assert "operand_constants = 1;" in subject.source.text


def test_every_variant_is_code_of_its_own() -> None:
    found = variants(subjects()["matmul 128x768 768x768 +bias +res"])
    codes = {load_nvrtc().compile(source, H100.arch).cubin for source in found.values()}
    assert len(codes) == len(VARIANTS)


def test_a_chain_computes_the_same_in_both_variants() -> None:
    subject = subjects()["depthwise 7x7 384 14 +bias"]
    device = Emulator(GUARDED)
    chain = ColdChain(device, subject, length=2)
    for each in chain.copies:
        _load(device, each.source)
    results = []
    for name in (NOTHING, CONSTANTS):
        source = variants(subject)[name]
        _load(device, source)
        device.fill(chain.output, chain.output_bytes, 255)
        launches = chain.launches(source.digest)
        assert len({each.arguments[1] for each in launches if each.kernel == source.digest}) == 2
        for launch in launches:
            device.launch(launch)
        results.append(device.read(chain.output, chain.output_bytes).view(np.float16))
    assert np.isfinite(results[0]).all()
    np.testing.assert_array_equal(*results)


def _load(device: Emulator, source: KernelSource) -> None:
    device.load(KernelImage(source.digest, source, b""))
