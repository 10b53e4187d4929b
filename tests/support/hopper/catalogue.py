"""Small kernels that use what sm_90 has, each with the numbers that it must give exactly.

The emulator and a GPU execute the same examples. What is expected is computed from the documents (PTX ISA:
tensors, swizzling modes, matrix descriptors; CUDA driver API: im2col), by neither of them.
"""

from __future__ import annotations

from support.hopper.convolutions import convolutions
from support.hopper.copies import boxes, others, pixels, roundings, sums
from support.hopper.example import Example
from support.hopper.products import gemms, products, shared_gemms


def examples() -> list[Example]:
    """All of them."""
    return [
        *boxes(),
        *roundings(),
        *pixels(),
        *others(),
        *sums(),
        *products(),
        *gemms(),
        *shared_gemms(),
        *convolutions(),
    ]
