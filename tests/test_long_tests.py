"""Long tests begin first, and nothing else changes its place."""

import os
from pathlib import Path

import pytest
from support.long_tests import begin_with_long_tests

TESTS = """
import pytest

def test_first(): ...

@pytest.mark.parametrize("size", [1, pytest.param(2, marks=pytest.mark.long)])
def test_sizes(size): ...

@pytest.mark.long
def test_last(): ...
"""


class Ordered:
    """A plugin of pytest: names of the tests, in their order."""

    names: list[str]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        begin_with_long_tests(items)
        self.names = [item.name for item in items]


def test_they_begin_and_the_others_follow_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    ordered = Ordered()
    options = ["--collect-only", "-qq", "-c", os.devnull, "-p", "no:cacheprovider"]
    pytest.main([*options, "--rootdir", str(tmp_path), str(tmp_path)], plugins=[ordered])
    assert ordered.names == ["test_sizes[2]", "test_last", "test_first", "test_sizes[1]"]
