"""One build with sanitizers, for all tests of the C++ in ``plugins/``."""

from pathlib import Path

import pytest
from support.plugins import SANITIZED, TOGETHER, built


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
