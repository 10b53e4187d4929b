"""What a user of PyTorch would run: the module in channels last, eager and compiled, as CUDA graphs.

cuDNN is autotuned (``cudnn.benchmark``), fp32 is strict (no tf32), the weights have the precision asked
for, and images lie in channels last already: what reaches the clock is the network alone. What compiles
may freeze the weights, as an engine does: normalisations are folded, and weights laid out once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rows.tuned import Case
from wpk.dtypes import Precision

WARM_UPS = 3
"""Calls before a capture, as torch.cuda.graphs asks for; the first compiles and autotunes."""

EAGER = "channels last"

MODES: Mapping[str, str | None] = {
    EAGER: None,
    "torch.compile, frozen": "default",
    "max-autotune, frozen": "max-autotune-no-cudagraphs",
}
"""Ways to run a module, with their mode of ``torch.compile``: all are captured the same way."""

USUAL, AUTOTUNED = tuple(MODES)[:-1], tuple(MODES)[-1:]
"""Ways that every network is run, and the one that takes minutes to compile."""


def be_strict() -> None:
    """No tf32 in fp32 products, and cuDNN's fastest implementations."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True


def in_float64(module: Any, inputs: Sequence[Any], device: str) -> tuple[NDArray[np.float64], ...]:
    """What is right: the module's outputs, computed in float64."""
    import torch

    placed = [_placed(each, device, torch.float64) for each in inputs]
    with torch.no_grad():
        found = _several(copy.deepcopy(module).to(device).double()(*placed))
    return tuple(each.cpu().numpy() for each in found)


def compiled(module: Any, way: str) -> Callable[..., Any]:
    """The module as one of `MODES` runs it; what compiles freezes its weights at the first call."""
    import torch

    mode = MODES[way]
    if mode is None:
        return lambda *inputs: module(*inputs)
    torch._dynamo.reset()
    function = torch.compile(module, mode=mode, dynamic=False)

    def call(*inputs: Any) -> Any:
        with torch._inductor.config.patch(freezing=True):
            return function(*inputs)

    return call


class UncapturedError(Exception):
    """A way to run a module cannot be captured in a CUDA graph."""


class TorchGraph:
    """A module with its inputs, captured in a CUDA graph that is started on a given stream."""

    def __init__(
        self, module: Any, inputs: Sequence[Any], way: str, case: Case, stream: int
    ) -> None:
        """Warm up and capture.

        Args:
            module: In fp32, on the CPU; it stays as it is.
            inputs: Of the module, on the CPU.
            way: One of `MODES`.
            case: Its precision is that of weights and activations.
            stream: Handle of the stream that replays go to.

        Raises:
            UncapturedError: It does what a CUDA graph cannot hold, as copying from the CPU.
        """
        import torch

        dtype = {Precision.FP32: torch.float32, Precision.FP16: torch.float16}[case.precision]
        ours = copy.deepcopy(module).to("cuda", dtype, memory_format=torch.channels_last)
        self._module = ours  # whose weights a graph reads, and does not keep
        self._call = compiled(ours, way)  # as it is with those that were frozen
        self._inputs = [_placed(each, "cuda", dtype) for each in inputs]
        self._stream = torch.cuda.ExternalStream(stream)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                self._call(*self._inputs)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        try:
            with torch.no_grad(), torch.cuda.graph(self._graph):
                self._outputs = _several(self._call(*self._inputs))
        except RuntimeError as error:
            raise UncapturedError(str(error).partition("\n")[0]) from error

    def replay(self) -> None:
        """Start it once."""
        import torch

        with torch.cuda.stream(self._stream):
            self._graph.replay()

    def outputs(self) -> tuple[NDArray[np.float32], ...]:
        """What it gives."""
        import torch

        self.replay()
        torch.cuda.synchronize()
        return tuple(each.float().cpu().numpy() for each in self._outputs)


def keep_compiled(folder: Path) -> dict[str, str]:
    """The environment with which torch keeps what it compiled; before torch is imported."""
    return {"TORCHINDUCTOR_CACHE_DIR": str(folder)}


def _several(outputs: Any) -> tuple[Any, ...]:
    """The outputs of a module that gives one tensor, or a tuple of them."""
    return tuple(outputs) if isinstance(outputs, tuple | list) else (outputs,)


def _placed(given: Any, device: str, dtype: Any) -> Any:
    """An input on a device: numbers as the type says, images in channels last, tokens as they are."""
    import torch

    if not given.is_floating_point():
        return given.to(device)
    image = given.dim() == 4
    layout = torch.channels_last if image else torch.contiguous_format
    return given.to(device, dtype).contiguous(memory_format=layout)
