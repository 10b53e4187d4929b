"""Operands that are hard on products of fp32, the products, and how far off they are.

Errors are in units u = 2^-24 of the sum of the products' magnitudes, to be held beside those of a chain of fused
multiply-adds in fp32.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from subjects.problems import matmul

from wpk.build import load_nvrtc
from wpk.dims import evaluate
from wpk.dtypes import Precision
from wpk.execution import BoundLaunch, Device, KernelImage, Pointer
from wpk.schedules.gemm_mma import GemmMmaTemplate
from wpk.schedules.tiles.mma import MmaSchedule

Array = np.ndarray[Any, Any]

SIZE = 16  # rows and columns of the products
DEPTH = 32  # of a slot: elements whose products are summed within the tensor cores, the most that schedules have
U = 2.0**-24
OWN = 32.0
"""What splitting and one slot may cost, whatever the reduction: two units for the rest of either operand, four for
the product left out, one to two for each of a slot's twelve products, whose sums grow: half of those."""
LARGEST = float(np.finfo(np.float32).max)


def normal(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def positive(rng: np.random.Generator, depth: int) -> tuple[Array, Array]:
    return np.abs(normal(rng, SIZE, depth)), np.abs(normal(rng, depth, SIZE))


def next_to_one(rng: np.random.Generator, depth: int) -> tuple[Array, Array]:
    """Where a unit weighs most."""
    a, b = rng.random((SIZE, depth)), rng.random((depth, SIZE))
    return (1 + a * 2.0**-11).astype(np.float32), (1 + b * 2.0**-11).astype(np.float32)


def scattered(rng: np.random.Generator, depth: int) -> tuple[Array, Array]:
    """Magnitudes from 2^-40 to 2^40 within each reduction."""
    a, b = (
        np.exp2(rng.uniform(-40, 40, (SIZE, depth))),
        np.exp2(rng.uniform(-40, 40, (depth, SIZE))),
    )
    return (
        (a * normal(rng, SIZE, depth)).astype(np.float32),
        (b * normal(rng, depth, SIZE)).astype(np.float32),
    )


def falling(rng: np.random.Generator, depth: int) -> tuple[Array, Array]:
    a = normal(rng, SIZE, depth) * np.exp2(np.linspace(40, -40, depth))
    return a.astype(np.float32), normal(rng, depth, SIZE)


def rising(rng: np.random.Generator, depth: int) -> tuple[Array, Array]:
    a, b = falling(rng, depth)
    return a[:, ::-1].copy(), b


def cancelling(rng: np.random.Generator, depth: int) -> tuple[Array, Array]:
    """The second half takes away all but 2^-20 of the first."""
    a, b = normal(rng, SIZE, depth), normal(rng, depth, SIZE)
    half = depth // 2
    a[:, half:] = -a[:, :half]
    b[half:] = b[:half] * (1 + 2.0**-20 * rng.standard_normal((half, SIZE)))
    return a, b


Draw = Callable[[np.random.Generator, int], tuple[Array, Array]]

OPERANDS: dict[str, Draw] = {
    "normal": lambda rng, depth: (normal(rng, SIZE, depth), normal(rng, depth, SIZE)),
    "positive": positive,
    "next to one": next_to_one,
    "scattered": scattered,
    "falling": falling,
    "rising": rising,
    "cancelling": cancelling,
}


def errors(y: Array, a: Array, b: Array) -> float:
    """The largest error, in units."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float((np.abs(y - a @ b) / (np.abs(a) @ np.abs(b))).max() / U)


def leaning(y: Array, a: Array, b: Array) -> float:
    """How much larger all products are than they should be, in units: the slope of the errors over the products.

    Of errors that lean to no side it is their mean over the root of the number of products.
    """
    right = a.astype(np.float64) @ b.astype(np.float64)
    return float((right * (y - right)).sum() / np.square(right).sum() / U)


def activations(depth: int) -> tuple[Array, Array]:
    """A product as networks have it: what passed a ReLU, and weights."""
    rng = np.random.default_rng(depth)
    return np.maximum(normal(rng, 128, depth), 0), normal(rng, depth, 128)


def fused_chain(a: Array, b: Array) -> Array:
    """What the ordinary cores give: products are exact in fp64, each addition is rounded to fp32."""
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        product = np.outer(a[:, k].astype(np.float64), b[k].astype(np.float64))
        total = (total.astype(np.float64) + product).astype(np.float32)
    return total.astype(np.float64)


def product_on(device: Device, a: Array, b: Array, schedule: MmaSchedule) -> Array:
    """What gemm_mma makes of two fp32 matrices, neither of them constant, in float64."""
    template, (m, k), n = GemmMmaTemplate(), a.shape, b.shape[1]
    problem = matmul(m, n, k, precision=Precision.FP32, constant=False)
    (source,), (launch,) = (f(problem, schedule) for f in (template.instantiate, template.launches))
    cubin = b"" if device.executes_source else load_nvrtc().compile(source, "sm_90a").cubin
    device.load(KernelImage(source.digest, source, cubin))
    memory = [*(x.astype(np.float32) for x in (a, b)), np.full((m, n), np.nan, np.float32)]
    addresses = [device.allocate(x.nbytes) for x in memory]
    for address, x in zip(addresses, memory, strict=True):
        device.write(address, np.ascontiguousarray(x).view(np.uint8).ravel())
    first, second, output = map(Pointer, addresses)
    x, y, z = (evaluate(size, {}) for size in launch.grid)
    device.launch(
        BoundLaunch(
            *(launch.kernel, launch.entry, (x, y, z), launch.block, launch.cluster),
            *(
                launch.shared_bytes,
                (first, second, evaluate(problem.leading.expression, {}), output),
            ),
            launch.attributes,
        )
    )
    result = device.read(addresses[2], memory[2].nbytes).view(np.float32).reshape(m, n)
    for address in addresses:
        device.free(address)
    return result.astype(np.float64)


def products_on(device: Device, a: Any, b: Any) -> Array:
    """Products of pairs of numbers, each the only one in a sum of eight whose others are zero."""
    found = []
    for left, right in np.broadcast(np.asarray(a, np.float32), np.asarray(b, np.float32)):
        x, w = np.zeros((SIZE, 8), np.float32), np.zeros((8, SIZE), np.float32)
        x[3, 5], w[5, 7] = left, right
        found.append(product_on(device, x, w, MmaSchedule(16, 16, 8, 1, 1, 2))[3, 7])
    return np.asarray(found)
