"""All rows, in the order in which they are measured."""

from __future__ import annotations

from rows import bounds, convolutions, engines, exports, faults, mixed, tuning, verified
from rows.base import Row


def all_rows() -> dict[str, Row]:
    """By name."""
    modules = (exports, faults, engines, tuning, convolutions, mixed, verified, bounds)
    return {row.name: row for module in modules for row in module.rows()}
