"""Sizes of a warpgroup."""

GROUP_ROWS, GROUP_THREADS, WARP = 64, 128, 32
"""Of a warpgroup; and threads of a warp."""
