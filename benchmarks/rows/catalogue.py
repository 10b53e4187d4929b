"""All rows, in the order in which they are measured."""

from __future__ import annotations

from rows import (
    ahead,
    bare_products,
    bounds,
    branches,
    c_api,
    contention,
    convolutions,
    core_operators,
    engines,
    exactness,
    exports,
    faults,
    fixed,
    floor,
    forms,
    free_sizes,
    large,
    mixed,
    networks,
    product_peak,
    quantised,
    recurrent,
    roofline,
    share,
    shortcuts,
    since,
    skinny,
    tensorrt,
    tuning,
    verified,
    zoo,
)
from rows.base import Row

MODULES = (
    exports,
    faults,
    engines,
    branches,
    ahead,
    c_api,
    core_operators,
    tensorrt,
    tuning,
    convolutions,
    mixed,
    networks,
    since,
    forms,
    quantised,
    recurrent,
    large,
    skinny,
    shortcuts,
    free_sizes,
    exactness,
    floor,
    contention,
    roofline,
    verified,
    zoo,
    fixed,
    bare_products,
    product_peak,
    share,
    bounds,
)
"""What tunes a network comes before what only looks at its plan."""


def all_rows() -> dict[str, Row]:
    """By name."""
    return {row.name: row for module in MODULES for row in module.rows()}
