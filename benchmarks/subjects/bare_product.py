"""A product of two matrices of 16 bits by PyTorch's library alone, as a CUDA graph: nothing is fused into it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wpk.problems import Convolution, Matmul, Problem

REPETITIONS = 20
"""Products of a graph, one behind the other, so that starting it costs little of each."""

WAYS = tuple(
    (library, is_turned) for library in ("cublas", "cublaslt") for is_turned in (False, True)
)
"""The library's front ends, and whether the second factor lies as a linear layer keeps its weight."""

_WARM_UPS = 3


@dataclass(frozen=True, order=True)
class BareProduct:
    """``m x k · k x n``."""

    m: int
    n: int
    k: int

    @classmethod
    def of(cls, problem: Problem) -> BareProduct:
        """What a problem multiplies, without all that is computed in front of it and behind.

        Batches of one matrix are rows of one product, and a convolution is the product of its patches, as if gathering them
        cost nothing.

        Raises:
            ValueError: It is no single product: each matrix of a batch has a factor of its own, channels come in groups,
                patches reach beyond the image, so that the product would multiply more, or two products are joined.
        """
        if isinstance(problem, Convolution):
            found = cls(problem.n.value * problem.p * problem.q, problem.k, problem.reduction)
            why = f"{found.operations} operations where it has {problem.traffic().products}"
            is_single = found.operations == problem.traffic().products
        elif isinstance(problem, Matmul):
            batch = problem.batch[0].value * problem.batch[1]
            found = cls(batch * problem.m.value, problem.n, problem.k)
            why, is_single = "b differs in its batch", batch == 1 or not any(problem.b.strides[:2])
        else:
            raise ValueError(f"{problem.words()} is no single product")
        if not is_single:
            raise ValueError(f"{problem.words()} is no single product: {why}")
        return found

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.m * self.n * self.k


class BareGraph:
    """`REPETITIONS` of a product in one of `WAYS`, captured in a graph that is started on a given stream."""

    def __init__(self, product: BareProduct, way: tuple[str, bool], stream: int) -> None:
        """Place factors of a normal distribution, warm up and capture."""
        import torch

        library, is_turned = way
        torch.backends.cuda.preferred_blas_library(library)
        half: dict[str, Any] = {"device": "cuda", "dtype": torch.float16}
        a, b = torch.randn(product.m, product.k, **half), torch.randn(product.n, product.k, **half)
        b = b.t() if is_turned else b.t().contiguous()
        y = torch.empty(product.m, product.n, **half)
        self._held = a, b, y
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UPS):
                torch.mm(a, b, out=y)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self._stream = torch.cuda.ExternalStream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            for _ in range(REPETITIONS):
                torch.mm(a, b, out=y)

    def replay(self) -> None:
        """Start it once."""
        import torch

        with torch.cuda.stream(self._stream):
            self._graph.replay()
