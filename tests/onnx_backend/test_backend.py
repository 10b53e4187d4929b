"""The tests that onnx ships for backends: each comes out as ``expectations.txt`` says.

What is refused and passes some day fails here, like what passed and is refused: the file is the record.
"""

from pathlib import Path

import backend_expectations
import onnx
import pytest
from backend_cases import VERSION, all_cases, find_case
from backend_expectations import UNKNOWN, read, read_float32, render
from backend_float32 import is_float32_inference
from backend_outcomes import Kind, judge
from support.plans.warm import Warm

pytestmark = pytest.mark.skipif(
    onnx.__version__ != VERSION,
    reason=f"the expectations are about onnx {VERSION}; {onnx.__version__} has other tests",
)

EXPECTED = read()

EVERY = 80
"""One test of so many is in the sample."""


@pytest.fixture(name="update")
def fixture_update(request: pytest.FixtureRequest) -> bool:
    """Whether the file is to be written instead of compared."""
    return bool(request.config.getoption("--update-backend"))


def _parametrize(keys: list[tuple[str, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("group", "name"), keys, ids=[name for _, name in keys])


@_parametrize(sorted(EXPECTED)[::EVERY])
def test_a_sample_comes_out_as_expected(
    group: str, name: str, warm_without_cubins: Warm, update: bool, tmp_path: Path
) -> None:
    seen, expected = _check(group, name, warm_without_cubins, update, tmp_path)
    assert _without_reason(seen) == _without_reason(expected)


@pytest.mark.backend
@_parametrize(sorted(EXPECTED))
def test_comes_out_as_expected(
    group: str, name: str, warm_without_cubins: Warm, update: bool, tmp_path: Path
) -> None:
    seen, expected = _check(group, name, warm_without_cubins, update, tmp_path)
    assert seen == expected


def _check(group: str, name: str, warm: Warm, update: bool, folder: Path) -> tuple[str, str]:
    """What is seen and what is expected; the same where the file is to be written."""
    result = judge(find_case(group, name), folder)
    if result.kind is Kind.CRASHED:
        warm.drop_device()  # it may be what crashed
    print(result.evidence)
    if not update:
        return str(result), EXPECTED[group, name]
    backend_expectations.update(group, name, str(result))
    return str(result), str(result)


def _without_reason(outcome: str) -> str:
    """A refusal in whatever words: they change more often than what is carried."""
    return Kind.REFUSED if outcome.startswith(Kind.REFUSED) else outcome


@pytest.mark.backend
def test_every_test_of_the_suite_is_expected(update: bool) -> None:
    if update:
        backend_expectations.rename(all_cases())
    assert {name for _, name in read()} == set(all_cases())
    assert read_float32() == {name for name, each in all_cases().items() if each.is_float32}


@_parametrize(sorted(EXPECTED)[::EVERY])
def test_a_sample_is_of_float32_where_it_is_listed(group: str, name: str) -> None:
    assert is_float32_inference(group, find_case(group, name).model) == (name in read_float32())


_OUTSIDE = [
    ("node/cast", "test_cast_FLOAT_to_FLOAT16"),  # a second type of floats
    ("node/cast", "test_cast_FLOAT_to_INT4"),
    ("node/negativeloglikelihoodloss", "test_nllloss_NC_expanded"),
    ("node/softmax_cross_entropy_loss", "test_sce_mean_expanded"),
    ("node/dropout", "test_training_dropout"),
    ("node/batch_normalization", "test_batchnorm_example_training_mode"),
    ("node/add", "test_add_int8"),  # no floats
    ("simple", "test_sequence_model1"),  # tensors outside, a sequence inside
    ("node/adam", "test_adam"),
    ("node/if_", "test_if_seq"),
]


@_parametrize(_OUTSIDE)
def test_what_no_network_infers_in_float32_is_outside(group: str, name: str) -> None:
    assert not is_float32_inference(group, find_case(group, name).model)


_INSIDE = [
    ("node/topk", "test_top_k"),  # integers beside floats
    ("node/dropout", "test_dropout_default"),
    ("node/loop", "test_loop11"),
]


@_parametrize(_INSIDE)
def test_inference_in_float32_is_inside(group: str, name: str) -> None:
    assert is_float32_inference(group, find_case(group, name).model)


def test_the_file_is_as_it_would_be_written() -> None:
    assert render(EXPECTED, read_float32()) == backend_expectations.PATH.read_text(encoding="utf-8")


def test_nothing_is_wrong_and_nothing_crashes() -> None:
    fine = (Kind.PASSED, Kind.HANDED, Kind.AS_RUNTIME, Kind.REFUSED)
    faults = [key for key, outcome in EXPECTED.items() if not outcome.startswith(fine)]
    assert faults == []
    assert UNKNOWN not in EXPECTED.values()
