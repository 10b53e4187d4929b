"""``plugins/core`` executes kernels of every template from their specs: Python's bits, in threads, plainly and captured.

The program is CMake's (``cmake -S . -B build/cmake && cmake --build build/cmake``); ``WPK_BUILD`` names another folder of a
build, and ``WPK_SANITIZER`` words in front of the program, such as ``compute-sanitizer --error-exitcode 9``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rows.base import RowError
from subjects.c_engine import built
from subjects.core_operator import execute
from support.plans.core_operators import NETWORKS, core_cases, core_operators, executed

from wpk.device import CudaDevice
from wpk.dtypes import ASKED, Precision

THREADS = 4
"""That execute an operator at the same time, each on memory of its own."""

AT_ONCE = 4
"""Programs on the GPU."""

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def built_program() -> None:
    """Nothing is compared where the program was not built."""
    try:
        built("tests", "run_operator")
    except RowError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("precision", list(ASKED))
@pytest.mark.parametrize("network", NETWORKS)
def test_cpp_gives_pythons_bits(
    hopper: CudaDevice,
    tmp_path: Path,
    record: Callable[[str, object], None],
    network: str,
    precision: Precision,
) -> None:
    operators = core_operators(network, precision, tmp_path)
    cases = core_cases(operators, [executed(operator, hopper) for operator in operators])
    assert all(case.expected != case.outputs for case in cases)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(lambda case: execute(case, tmp_path, THREADS), cases))
    needed = Counter(feature for case in cases for feature in case.features)
    figures = {"operators": len(cases), "threads": THREADS, "features": dict(needed)}
    record(f"core.operators.{network}.{precision.value}", figures)
    wrong = {case.spec.name: words for case, words in zip(cases, said, strict=True) if words}
    assert not wrong


def test_an_output_of_other_bits_is_noticed(hopper: CudaDevice, tmp_path: Path) -> None:
    """The negative control."""
    operator = core_operators("embedding", Precision.FP32, tmp_path)[0]
    right = executed(operator, hopper)
    wrong = bytes([right[0] ^ 1]) + right[1:]
    assert execute(operator.case(0, wrong), tmp_path, 1) == "2 of 2 results differ"
