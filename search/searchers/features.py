"""A problem as named numbers: the part of a reinforcement learner's observation that never changes.

For convolutions these are the nine of Woodpecker-DL 2.4: N, C_in, C_out, K_h, K_w, H, W, stride and
padding. With the seven parameters of that paper's schedules and the moving average of run time they
make its 17-dimensional observation; other problems are described by their own extents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wpk.problems import (
    Attention,
    ClampedConvolution,
    Convolution,
    Elementwise,
    Gather,
    Matmul,
    Normalisation,
    Pad,
    Pooling,
    Problem,
    Reduction,
    Resize,
)

Features = dict[str, float]


def problem_features(problem: Problem) -> Features:
    """The problem's extents and settings by name; the same names for all problems of a kind.

    Axes of which a kind has no fixed number are counted from the last.
    """
    return _DESCRIBE[type(problem)](problem)


def _convolution(problem: Convolution) -> Features:
    # "Padding" is SAME or VALID in the paper: here whether there is any.
    return {
        "n": problem.n.value,
        "c_in": problem.c,
        "c_out": problem.k,
        "k_h": problem.filter[0],
        "k_w": problem.filter[1],
        "h": problem.h,
        "w": problem.w,
        "stride": problem.stride[0],
        "padding": float(any(problem.pad)),
    }


def _matmul(problem: Matmul) -> Features:
    batch = problem.batch[0].value * problem.batch[1]
    return {"batch": batch, "m": problem.m.value, "n": problem.n, "k": problem.k}


def _attention(problem: Attention) -> Features:
    return {
        "batch": problem.batch[0].value * problem.batch[1],
        "queries": problem.queries,
        "keys": problem.keys,
        "depth": problem.depth,
        "width": problem.width,
    }


def _pooling(problem: Pooling) -> Features:
    return {
        "n": problem.n.value,
        "c": problem.c,
        "h": problem.h,
        "w": problem.w,
        "window_h": problem.window[0],
        "window_w": problem.window[1],
        "stride": problem.stride[0],
        "padding": float(any(problem.pad)),
    }


def _reduction(problem: Reduction) -> Features:
    outer = (problem.leading.value, *problem.outer[1:])
    return _axes("outer", outer, 4) | _axes("inner", problem.inner, 3)


def _normalisation(problem: Normalisation) -> Features:
    outer = (problem.leading.value, *problem.outer[1:])
    return {"cols": problem.cols} | _axes("outer", outer, 3)


def _elementwise(problem: Elementwise) -> Features:
    shape = (problem.leading.value, *problem.shape[1:])
    return {"inputs": len(problem.inputs)} | _axes("axis", shape, 5)


def _gather(problem: Gather) -> Features:
    return {
        "outer": problem.outer.value,
        "axis_size": problem.axis_size,
        "count": problem.count.value,
        "inner": problem.inner,
    }


def _pad(problem: Pad) -> Features:
    return _axes("x", problem.x_shape, 4) | _axes("y", problem.y_shape, 4)


def _resize(problem: Resize) -> Features:
    return {
        "n": problem.n.value,
        "c": problem.c,
        "h": problem.h,
        "w": problem.w,
        "p": problem.p,
        "q": problem.q,
    }


def _axes(name: str, sizes: tuple[int, ...], most: int) -> Features:
    padded = (1,) * (most - len(sizes)) + sizes
    return {f"{name}_{most - place}": size for place, size in enumerate(padded)}


_DESCRIBE: dict[type[Any], Callable[[Any], Features]] = {
    Attention: _attention,
    ClampedConvolution: _convolution,
    Convolution: _convolution,
    Matmul: _matmul,
    Pooling: _pooling,
    Reduction: _reduction,
    Normalisation: _normalisation,
    Elementwise: _elementwise,
    Gather: _gather,
    Pad: _pad,
    Resize: _resize,
}
