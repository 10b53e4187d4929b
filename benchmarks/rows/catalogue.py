"""All rows, in the order in which they are measured."""

from __future__ import annotations

from rows import bounds, convolutions, engines, exports, faults, mixed, tuning, verified
from rows.base import Row


def all_rows() -> dict[str, Row]:
    """By name; the bounds last, since they look at what the others measured."""
    modules = (exports, faults, engines, tuning, convolutions, verified, mixed, bounds)
    return {row.name: row for module in modules for row in module.rows()}
