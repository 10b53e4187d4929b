"""Long tests begin before all others: one that began last would leave the other processes without work."""

import pytest


def begin_with_long_tests(items: list[pytest.Item]) -> None:
    """Put tests with the mark ``long`` first; the others stay in their order."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
