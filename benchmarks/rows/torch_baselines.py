"""What a user of PyTorch would run: the module in channels last, eager and compiled, as CUDA graphs.

cuDNN is autotuned (``cudnn.benchmark``), fp32 is strict (no tf32), the weights have the precision asked
for, and the input lies in channels last already: what reaches the clock is the network alone.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
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
    "torch.compile": "default",
    "max-autotune": "max-autotune-no-cudagraphs",
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


def in_float64(module: Any, inputs: Any, device: str) -> NDArray[np.float64]:
    """What is right: the module's output, computed in float64."""
    import torch

    with torch.no_grad():
        result = copy.deepcopy(module).to(device).double()(_placed(inputs, device, torch.float64))
    array: NDArray[np.float64] = result.cpu().numpy()
    return array


class TorchGraph:
    """A module with its input, captured in a CUDA graph that is started on a given stream."""

    def __init__(self, module: Any, inputs: Any, way: str, case: Case, stream: int) -> None:
        """Warm up and capture.

        Args:
            module: In fp32, on the CPU; it stays as it is.
            inputs: Of the module, on the CPU.
            way: One of `MODES`.
            case: Its precision is that of weights and activations.
            stream: Handle of the stream that replays go to.
        """
        import torch

        dtype = {Precision.FP32: torch.float32, Precision.FP16: torch.float16}[case.precision]
        ours = copy.deepcopy(module).to("cuda", dtype, memory_format=torch.channels_last)
        self._module = ours  # whose weights a graph reads, and does not keep
        call, mode = ours, MODES[way]
        if mode is not None:
            torch._dynamo.reset()
            call = torch.compile(ours, mode=mode, dynamic=False)
        self._input = _placed(inputs, "cuda", dtype)
        self._stream = torch.cuda.ExternalStream(stream)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                call(self._input)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self._graph):
            self._output = call(self._input)

    def replay(self) -> None:
        """Start it once."""
        import torch

        with torch.cuda.stream(self._stream):
            self._graph.replay()

    def output(self) -> NDArray[np.float32]:
        """What it gives."""
        import torch

        self.replay()
        torch.cuda.synchronize()
        array: NDArray[np.float32] = self._output.float().cpu().numpy()
        return array


def keep_compiled(folder: Path) -> dict[str, str]:
    """The environment with which torch keeps what it compiled; before torch is imported."""
    return {"TORCHINDUCTOR_CACHE_DIR": str(folder)}


def _placed(inputs: Any, device: str, dtype: Any) -> Any:
    """The inputs on a device: images as the type says and in channels last, tokens as they are."""
    import torch

    if not inputs.is_floating_point():
        return inputs.to(device)
    return inputs.to(device, dtype).contiguous(memory_format=torch.channels_last)
