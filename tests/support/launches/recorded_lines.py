"""What ``plugins/tests/recording_cuda`` records of launches and tensor maps, as Python asks for them."""

from collections.abc import Iterator, Sequence
from typing import Any

from wpk.device.launch_form import configuration
from wpk.device.tensor_map import encoding
from wpk.execution import BoundLaunch, TensorMap


def line_of(driver: Any, launch: BoundLaunch) -> str:
    """The line of a launch.

    Args:
        driver: ``cuda.bindings.driver``.
        launch: What Python launches.
    """
    config = configuration(driver, launch, 0)
    cluster_id = int(driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
    words = ["cuLaunchKernelEx", config.gridDimX, config.gridDimY, config.gridDimZ]
    words += ["block", config.blockDimX, config.blockDimY, config.blockDimZ]
    words += ["shared", config.sharedMemBytes]
    words += [
        f"i{each}" if isinstance(each, int) else f"a{each.address}" for each in launch.arguments
    ]
    for attribute in config.attrs:
        number, value = int(attribute.id), bytes(attribute.value.pad[:12])
        extents = [int.from_bytes(value[at : at + 4], "little") for at in (0, 4, 8)]
        words += ["attribute", number, *extents[: 3 if number == cluster_id else 1]]
    return " ".join(map(str, words))


def line_of_map(driver: Any, tensor: TensorMap) -> str:
    """The line of a tensor map."""
    kind, _, _, shape, strides, *rest = encoding(driver, tensor)
    *box, steps, interleave, swizzle, promotion, fill = rest
    if tensor.im2col is None:
        name, around = "cuTensorMapEncodeTiled", ["box", *_numbers(box[0])]
    else:
        name = "cuTensorMapEncodeIm2col"
        around = ["lower", *box[0], "upper", *box[1], "box", box[2], box[3]]
    modes = [int(each) for each in (interleave, swizzle, promotion, fill)]
    words = [name, "type", int(kind), "shape", *_numbers(shape), "strides"]
    words += [*_numbers(strides)[: len(tensor.shape) - 1], *around, "steps", *_numbers(steps)]
    return " ".join(map(str, [*words, "modes", *modes]))


def lines_of_maps(driver: Any, launches: Sequence[BoundLaunch]) -> Iterator[str]:
    """The lines of all their tensor maps."""
    for launch in launches:
        for each in launch.arguments:
            if isinstance(each, TensorMap):
                yield line_of_map(driver, each)


def _numbers(values: Sequence[Any]) -> list[int]:
    return [int(each) for each in values]
