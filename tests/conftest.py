"""Options of the tests, processes that they share, and golden files: generated text compared with what was reviewed."""

import ctypes
import gc
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path

import pytest
from support.devices.kept_processes import kept_processes, own_processes
from support.devices.quick_units import as_users_compile, quick_units
from support.long_tests import begin_with_long_tests
from support.plans.quick_search import one_cubin, one_finalist
from support.plans.warm import fixture_warm, fixture_warm_without_cubins

from wpk.garbage import collected_behind

__all__ = [
    "as_users_compile",
    "fixture_warm",
    "fixture_warm_without_cubins",
    "one_cubin",
    "one_finalist",
]

_GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--update-golden`` accepts what is generated now."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")
    parser.addoption(
        "--update-backend", action="store_true", help="write what becomes of onnx's backend tests"
    )
    parser.addoption("--record", type=Path, help="add what GPU tests measure to this JSON file")
    parser.addoption("--commit", help="commit of the sources, for the record")
    parser.addoption("--deal", default="0/1", help="i/n: of n processes, this is number i")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected is there to the end, and no garbage that Python should look for, now or between tests."""
    with collected_behind():
        collected = yield
    gc.freeze()
    return collected


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long tests come first; ``--deal i/n`` leaves every ``n``-th of the chosen tests."""
    begin_with_long_tests(items)
    place, of = map(int, config.getoption("--deal").split("/"))
    items[:] = items[place::of]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a GPU where there is no driver of one; without pycuda on a machine with a GPU it fails."""
    if item.get_closest_marker("gpu") and not _has_driver():
        pytest.skip("needs an NVIDIA GPU: there is no libcuda.so.1 on this machine")


@cache
def _has_driver() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


@pytest.fixture(scope="session", autouse=True)
def fixture_kept_processes() -> Iterator[None]:
    """Children are started once for all tests; tests of processes use `own_processes`."""
    with kept_processes():
        yield


@pytest.fixture(scope="session", autouse=True)
def fixture_quick_units(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[None]:
    """Units for the emulator are compiled quickly; tests of what users run use `as_users_compile`."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(pytestconfig, "workerinput") else base
    with quick_units(shared / "kernel_headers"):
        yield


@pytest.fixture(name="own_processes")
def fixture_own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children are started and ended as outside of tests."""
    own_processes(monkeypatch)


@pytest.fixture
def assert_golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with ``tests/golden/<name>``; rewrites the file under ``--update-golden``."""

    def compare(name: str, text: str) -> None:
        path = _GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"{path} does not exist; review and accept with --update-golden"
        assert text == path.read_text(encoding="utf-8")

    return compare
