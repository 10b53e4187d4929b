"""What every GPU of a compute capability has in common: what an SM holds, and what a block may ask for.

CUDA C++ Programming Guide 12.9 and 13.0, "Technical specifications per compute capability"; the same
numbers stand in CCCL (`cuda::arch_traits`), 8.7, 11.0 and 12.0 included.
"""

from typing import NamedTuple

_KIB = 1024


class Limits(NamedTuple):
    """Limits of one compute capability; the names are those of `wpk.targets.target.Target`."""

    max_shared_block: int
    max_shared_sm: int
    max_threads_sm: int
    max_blocks_sm: int
    max_threads_block: int = 1024
    registers_sm: int = 65536


LIMITS: dict[tuple[int, int], Limits] = {
    (6, 0): Limits(48 * _KIB, 64 * _KIB, 2048, 32),
    (7, 0): Limits(96 * _KIB, 96 * _KIB, 2048, 32),
    (7, 5): Limits(64 * _KIB, 64 * _KIB, 1024, 16),
    (8, 0): Limits(163 * _KIB, 164 * _KIB, 2048, 32),
    (8, 6): Limits(99 * _KIB, 100 * _KIB, 1536, 16),
    (8, 7): Limits(163 * _KIB, 164 * _KIB, 1536, 16),
    (8, 9): Limits(99 * _KIB, 100 * _KIB, 1536, 24),
    (9, 0): Limits(227 * _KIB, 228 * _KIB, 2048, 32),
    (10, 0): Limits(227 * _KIB, 228 * _KIB, 2048, 32),
    (11, 0): Limits(227 * _KIB, 228 * _KIB, 1536, 24),
    (12, 0): Limits(99 * _KIB, 100 * _KIB, 1536, 24),
}

SOURCE = "CUDA C++ Programming Guide 12.9 and 13.0, technical specifications per compute capability"
