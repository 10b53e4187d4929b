"""Sizes that keep kernels from a problem's bound, in words: few of something, or no multiple of what moves together."""

from collections.abc import Iterator

FEW = 64
"""Rows, columns or pixels that do not fill a large tile: those of tensor cores have up to 256 rows."""

TOGETHER = 8
"""Elements of 16 bits that a copy of 16 bytes moves, and that a product on tensor cores takes."""


def ragged_words(count: int, what: str) -> Iterator[str]:
    """Say that so many are copied and multiplied in pieces; nothing where whole copies take them."""
    if count % TOGETHER:
        yield f"{count} {what}, no multiple of {TOGETHER}"


def few_words(count: int, what: str) -> Iterator[str]:
    """Say that so many fill no large tile; nothing where they do."""
    if count <= FEW:
        yield f"{count} {what}"
