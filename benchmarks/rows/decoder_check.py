"""A decoder's outputs, layer by layer: each is held to float64 on the engine's own input of that layer.

What a layer adds to the residual stream is judged, not the stream: so nothing hides behind what the
layers before it added; two roundings of the stream to its own type, fp16, are taken off the error. All that follows from one layer's input alone is compared with its outputs, and
these are the next layer's input; so all layers right means the engine right, and a fault is named where it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray
from subjects.decoder import (
    LOGITS,
    TOKENS,
    past_name,
    present_name,
    stream_name,
)
from subjects.decoder_layers import DecoderLayers

from wpk.checks.limits import LIMITS, OutputDistance
from wpk.checks.model_check import output_error
from wpk.dtypes import Precision

_UNIT = 2.0**-11
"""Largest relative error of a number that is rounded to fp16."""

Arrays = Mapping[str, NDArray[np.generic]]

LIMIT = LIMITS[Precision.FP16]
"""What a layer's values may differ by: what a whole model's outputs may."""


def layer_errors(
    layers: DecoderLayers, inputs: Arrays, outputs: Arrays, embedding: NDArray[np.float16]
) -> dict[str, OutputDistance]:
    """Errors of what an engine gave, by where in the decoder they are; what is only copied is exact or infinitely wrong.

    Args:
        layers: The formulas in float64, with the weights that the engine should have.
        inputs: What the engine was given.
        outputs: All that it gave.
        embedding: The table of tokens.
    """
    found = {"embedding": _copied(outputs[stream_name(0)], embedding[inputs[TOKENS]])}
    for number in range(layers.decoder.layers):
        found |= dict(_errors_of(layers, number, inputs, outputs))
    last = layers.place(outputs[stream_name(layers.decoder.layers)])
    right = layers.fetch(layers.logits(last))
    return found | {LOGITS: output_error(outputs[LOGITS], right)}


def _errors_of(
    layers: DecoderLayers, number: int, inputs: Arrays, outputs: Arrays
) -> Iterator[tuple[str, OutputDistance]]:
    given = [
        outputs[stream_name(number)],
        *(inputs[past_name(number, w)] for w in ("key", "value")),
    ]
    right = layers.layer(number, *(layers.place(each) for each in given))
    past = layers.decoder.past
    for what, new in (("key", right.key), ("value", right.value)):
        present = outputs[present_name(number, what)]
        old = _copied(present[:, :, :past], inputs[past_name(number, what)])
        yield f"layer {number}: past {what}s", old
        yield f"layer {number}: {what}", output_error(present[:, :, past:], layers.fetch(new))
    middle, stream = layers.fetch(right.middle), layers.fetch(right.stream)
    error = outputs[stream_name(number + 1)].astype(np.float64) - stream
    own = _UNIT * (np.abs(middle) + np.abs(stream))  # the model's type, whoever computes it
    beyond = np.sign(error) * np.maximum(np.abs(error) - own, 0.0)
    added = stream - given[0].astype(np.float64)
    yield f"layer {number}: stream", output_error(added + beyond, added)


def _copied(actual: NDArray[np.generic], expected: NDArray[np.generic]) -> OutputDistance:
    error = 0.0 if np.array_equal(actual, expected) else float("inf")
    return OutputDistance(error, error)


def faults(errors: Mapping[str, OutputDistance]) -> list[str]:
    """Where the errors are beyond the limit, with both."""
    return [
        f"{place}: median error {e.median:.1e} (allowed {LIMIT.median:.0e}), largest {e.worst:.1e} ({LIMIT.worst:.0e})"
        for place, e in errors.items()
        if not (e.median <= LIMIT.median and e.worst <= LIMIT.worst)
    ]


def right_logits(
    layers: DecoderLayers, inputs: Arrays, embedding: NDArray[np.float16]
) -> NDArray[np.float64]:
    """What the decoder computes of the tokens, in float64 from end to end."""
    x = layers.place(embedding[inputs[TOKENS]])
    for number in range(layers.decoder.layers):
        past = (layers.place(inputs[past_name(number, what)]) for what in ("key", "value"))
        x = layers.layer(number, x, *past).stream
    return layers.fetch(layers.logits(x))
