"""``plugins/core`` executes kernels of every template from their specs: Python's bits, in threads, plainly and captured.

The program is CMake's (``cmake -S . -B build/cmake && cmake --build build/cmake``); ``WPK_BUILD`` names another folder of a
build, and ``WPK_SANITIZER`` words in front of the program, such as ``compute-sanitizer --error-exitcode 9``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rows.base import RowError
from subjects.c_engine import built
from subjects.core_operator import execute
from support.plans.core_operators import NETWORKS, core_operators, executed, features
from support.plans.kernel_cases import Case

from wpk.device import CudaDevice
from wpk.dtypes import Precision

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


@pytest.mark.parametrize("precision", list(Precision))
@pytest.mark.parametrize("network", NETWORKS)
def test_cpp_gives_pythons_bits(
    hopper: CudaDevice,
    tmp_path: Path,
    load_case: Callable[..., None],
    record: Callable[[str, object], None],
    network: str,
    precision: Precision,
) -> None:
    def load(case: Case) -> None:
        load_case(case, hopper)

    operators = list(core_operators(network, precision, tmp_path, load))
    expected = [executed(operator, hopper) for operator in operators]
    untouched = [b"".join(each.tobytes() for each in o.outputs) for o in operators]
    assert all(one != other for one, other in zip(expected, untouched, strict=True))
    cases = [
        o.case(n, outputs) for n, (o, outputs) in enumerate(zip(operators, expected, strict=True))
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(lambda case: execute(case, tmp_path, THREADS), cases))
    figures = {"operators": len(operators), "threads": THREADS, "features": features(operators)}
    record(f"core.operators.{network}.{precision.value}", figures)
    wrong = {o.name: words for o, words in zip(operators, said, strict=True) if words}
    assert not wrong


def test_an_output_of_other_bits_is_noticed(
    hopper: CudaDevice, tmp_path: Path, load_case: Callable[..., None]
) -> None:
    """The negative control."""
    operator = next(
        core_operators("embedding", Precision.FP32, tmp_path, lambda case: load_case(case, hopper))
    )
    right = executed(operator, hopper)
    wrong = bytes([right[0] ^ 1]) + right[1:]
    assert execute(operator.case(0, wrong), tmp_path, 1) == "2 of 2 results differ"
