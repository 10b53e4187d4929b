"""Work made by hand, for tests of the models that read it."""

from collections.abc import Callable

import numpy as np
import pytest

from wpk.dtypes import Precision
from wpk.performance.work import Work

DEFAULTS: dict[str, float] = {
    "blocks": 132,
    "threads": 128,
    "shared_bytes": 0,
    "registers": 32,
    "block_flops": 1e6,
    "thread_flops": 1e4,
    "block_transactions": 1000,
    "thread_loads": 100,
    "store_bytes": 0,
    "steps": 10,
    "stages": 2,
}


@pytest.fixture
def make_work() -> Callable[..., Work]:
    """Columns of length one, or of the length of the sequences given; what is not given is plain."""

    def make(unit: Precision | None = None, element_bytes: int = 4, **given: object) -> Work:
        values = DEFAULTS | given
        arrays = np.broadcast_arrays(
            *(np.atleast_1d(np.asarray(v, float)) for v in values.values())
        )
        columns = {name: array.copy() for name, array in zip(values, arrays, strict=True)}
        return Work(unit=unit, element_bytes=element_bytes, **columns)

    return make
