"""cuDNN: NVIDIA's library of fused graphs for deep learning."""

from typing import ClassVar

from wpk.candidate import Configuration
from wpk.device import CudaDevice
from wpk.libraries.cudnn import Cudnn
from wpk.libraries.cudnn_description import CUDNN, GRAPH, Description
from wpk.libraries.cudnn_problems import describe, why_not
from wpk.libraries.cudnn_recipe import recipe_of
from wpk.libraries.library import Library, OpenLibrary
from wpk.problems import Problem


class CudnnLibrary(Library):
    """What cuDNN can be asked, wherever it is installed."""

    name: ClassVar[str] = CUDNN

    def why_not(self, problem: Problem) -> str | None:
        """See `Library.why_not`."""
        return why_not(problem)

    def constant_layout(self, problem: Problem, configuration: Configuration) -> str | None:
        """See `Library.constant_layout`."""
        return _description(problem, configuration).layout

    def recipe(self, problem: Problem, configuration: Configuration) -> bytes:
        """See `Library.recipe`."""
        return recipe_of(_description(problem, configuration), configuration)

    def requirement(self, version: str) -> str:
        """See `Library.requirement`."""
        return f"nvidia-cudnn-cu13=={version}.*"

    def open(self, device: CudaDevice) -> OpenLibrary:
        """See `Library.open`."""
        return Cudnn(device)


def _description(problem: Problem, configuration: Configuration) -> Description:
    descriptions = describe(problem)
    graph = dict(configuration).get(GRAPH, -1)
    if not 0 <= graph < len(descriptions):
        raise ValueError(f"graph {graph} of {len(descriptions)}")
    return descriptions[graph]
