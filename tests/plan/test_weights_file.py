"""The weights' member: where its arrays lie, and how large it is."""

import io
import json

import ml_dtypes
import numpy as np
import pytest

from wpk.errors import PlanError
from wpk.plan.weights_file import read_weights, weights_bytes, write_weights

WEIGHTS = [
    {},
    {"w": np.arange(8, dtype=np.float32)},
    {"flags": np.ones(7, bool), "half": np.ones((3, 5), np.float16), "whole": np.ones(1000)[:1]},
    {f"layer.{i}.weight-\u00e9\U0001f600": np.ones(i, np.int8) for i in range(300)},
    {"brain": np.ones((2, 3, 5, 7), ml_dtypes.bfloat16), "none": np.zeros((4, 0), np.float32)},
]


def written(weights: dict[str, np.ndarray]) -> bytes:
    stream = io.BytesIO()
    write_weights(stream, weights)
    return stream.getvalue()


@pytest.mark.parametrize("number", range(len(WEIGHTS)))
def test_the_size_is_known_beforehand_and_arrays_begin_at_64_bytes(number: int) -> None:
    weights = {
        n: a.astype(np.float32) if a.dtype == float else a for n, a in WEIGHTS[number].items()
    }
    data = written(weights)
    assert weights_bytes(weights) == len(data)
    start = 8 + int.from_bytes(data[:8], "little")
    assert start % 64 == 0
    assert data[start:] == b"".join(
        weights[name].tobytes() for name in sorted(weights, key=lambda n: (-weights[n].itemsize, n))
    )
    read = read_weights(data)
    assert read.keys() == weights.keys()
    assert all(np.array_equal(read[name], weights[name]) for name in weights)


@pytest.mark.parametrize("spare", [-1, 0, 1])
def test_a_header_may_fill_the_member(spare: int) -> None:
    header = b'{"w":{"dtype":"I8","shape":[0],"data_offsets":[0,0]}}'
    data = (len(header) - spare).to_bytes(8, "little") + header
    if spare < 0:
        with pytest.raises(PlanError, match=f"claims {len(header) + 1} bytes of {8 + len(header)}"):
            read_weights(data)
    elif spare == 0:
        assert read_weights(data)["w"].shape == (0,)
    else:
        with pytest.raises(PlanError, match="its header is no JSON"):
            read_weights(data)


@pytest.mark.parametrize("size", [0, 7, 8])
def test_a_member_begins_with_eight_bytes(size: int) -> None:
    with pytest.raises(PlanError, match="its header"):
        read_weights(bytes(size))


@pytest.mark.parametrize("shape", [[0, 2**47], [0, *[1] * 14, 2**40], [*[1] * 15, 0]])
def test_nothing_may_have_up_to_16_axes(shape: list[int]) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": shape, "data_offsets": [0, 0]}}).encode()
    assert read_weights(len(header).to_bytes(8, "little") + header)["w"].shape == tuple(shape)


def test_what_no_model_has_is_not_written() -> None:
    with pytest.raises(TypeError, match="weight 'w' has element type complex64"):
        written({"w": np.ones(3, np.complex64)})
