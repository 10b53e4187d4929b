"""Whether the batch is free or fixed makes no difference to what is computed, or by how much work."""

from pathlib import Path

import pytest
from support.each_value import each_value
from support.networks import handwritten

from wpk.dtypes import Precision
from wpk.loading import load_graph
from wpk.lowering.model import lower_model


def _fixed(path: Path, batch: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the model's inputs at a batch."""
    return {t.name: (batch, *(int(n) for n in t.shape[1:])) for t in load_graph(path, {}).inputs}


@pytest.mark.parametrize(
    ("name", "precision"), each_value(handwritten.TEXTS, [Precision.FP32, Precision.FP16])
)
def test_a_free_batch_costs_no_operator(tmp_path: Path, name: str, precision: Precision) -> None:
    path = handwritten.write(name, tmp_path)
    free, fixed = (
        lower_model(path, shapes, precision).program.operators for shapes in ({}, _fixed(path, 2))
    )
    assert [type(o.problem) for o in free] == [type(o.problem) for o in fixed]
