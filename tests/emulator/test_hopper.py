"""What sm_90 has, on the emulator: clusters, tensor copies, barriers that count bytes, products of warpgroups."""

import hopper_examples
import numpy as np
import pytest
from hopper_examples import Example

from wpk.build.nvrtc import load_nvrtc
from wpk.emulator.emulator import Emulator
from wpk.emulator.mode import CHECKING, FAST, Mode
from wpk.execution import KernelImage

EXAMPLES = hopper_examples.examples()

both_modes = pytest.mark.parametrize("mode", [FAST, CHECKING], ids=["fast", "checking"])


@both_modes
@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_gives_what_the_documents_say(example: Example, mode: Mode) -> None:
    source = example.source()
    result = hopper_examples.run(example, Emulator(mode), KernelImage(source.digest, source, b""))
    np.testing.assert_array_equal(result, example.expected)


@pytest.mark.parametrize("file", sorted({example.file for example in EXAMPLES}))
def test_compiles_for_hopper(file: str) -> None:
    """Each kernel of a file; the widths of wgmma one by one are another test's."""
    for source in {e.source().text: e.source() for e in EXAMPLES if e.file == file}.values():
        resources = load_nvrtc().compile(source, "sm_90a").resources
        assert resources.spill_store_bytes == 0
