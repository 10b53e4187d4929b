"""Optimization profiles: the sizes that an engine of TensorRT is to serve."""

from typing import Any

from wpk.nvinfer import TensorRTError
from wpk.shape_ranges import SizeRange

ANY_BATCH = SizeRange(1, 1, 32)
"""For a free batch without limits: TensorRT needs some."""

Shapes = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""The smallest, the fastest and the largest shape of one input."""


def batch_shapes(shapes: dict[str, tuple[int, ...]], batches: SizeRange) -> dict[str, Shapes]:
    """The profile of a network whose only free dimension is its batch.

    Args:
        shapes: Of every input of the network; -1 is free.
        batches: What takes its place.

    Returns:
        The shapes of the inputs that are free; empty where none is, since no profile is needed then.
    """
    smallest, fastest, largest = (
        {name: tuple(size if dim == -1 else dim for dim in dims) for name, dims in shapes.items()}
        for size in (batches.smallest, batches.fastest, batches.largest)
    )
    free = [name for name, dims in shapes.items() if -1 in dims]
    return {name: (smallest[name], fastest[name], largest[name]) for name in free}


def add_profile(builder: Any, config: Any, profile: dict[str, Shapes]) -> None:
    """Give a build one optimization profile; none where nothing is free.

    Raises:
        TensorRTError: TensorRT refuses it.
    """
    if not profile:
        return
    optimization = builder.create_optimization_profile()
    for name, shapes in profile.items():
        optimization.set_shape(name, *shapes)
    if config.add_optimization_profile(optimization) < 0:
        raise TensorRTError(
            f"TensorRT refuses the optimization profile {profile}",
            fix="give other sizes: --shapes NAME:MIN:OPT:MAX",
        )
