"""One build with sanitizers, for all tests of the C++ in ``plugins/``."""

from pathlib import Path

import pytest
from support.plugins import SANITIZED, TOGETHER, built


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs the build is tried first, one behind the other: a second process would wait for it."""
    items.sort(key=lambda item: "sanitized" not in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder of the build."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    return built(shared / "plugins", *SANITIZED, *TOGETHER)


@pytest.fixture(scope="session")
def print_specs(sanitized: Path) -> Path:
    """The program that reads specs."""
    return sanitized / "plugins" / "tests" / "print_specs"
