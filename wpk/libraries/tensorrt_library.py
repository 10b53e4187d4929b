"""TensorRT: NVIDIA's engine builder, asked for single operators."""

import importlib.util
from typing import ClassVar

from wpk.candidate import Configuration
from wpk.device import CudaDevice
from wpk.libraries.cudnn_description import GRAPH
from wpk.libraries.library import Library, OpenLibrary
from wpk.libraries.tensorrt import TensorRT
from wpk.libraries.tensorrt_problems import TENSORRT, describe, why_not
from wpk.problems import Problem


class TensorRTLibrary(Library):
    """What TensorRT can be asked, wherever it is installed."""

    name: ClassVar[str] = TENSORRT

    def is_asked(self) -> bool:
        """Where it is installed: few have it, and reports need not say so of each operator."""
        return importlib.util.find_spec("tensorrt") is not None

    def why_not(self, problem: Problem) -> str | None:
        """See `Library.why_not`."""
        return why_not(problem)

    def constant_layout(self, problem: Problem, configuration: Configuration) -> str | None:
        """See `Library.constant_layout`."""
        descriptions = describe(problem)
        graph = dict(configuration).get(GRAPH, -1)
        if len(configuration) != 1 or not 0 <= graph < len(descriptions):
            raise ValueError(f"{dict(configuration)} is none of {len(descriptions)} networks")
        return descriptions[graph].layout

    def recipe(self, problem: Problem, configuration: Configuration) -> bytes:
        """None: C and C++ execute whole engines of TensorRT, not operators."""
        return b""

    def requirement(self, version: str) -> str:
        """See `Library.requirement`."""
        return f"tensorrt=={version}"

    def open(self, device: CudaDevice) -> OpenLibrary:
        """See `Library.open`."""
        return TensorRT(device)
