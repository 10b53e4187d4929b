"""Sizes of a warpgroup, and what its turns take."""

GROUP_ROWS, GROUP_THREADS, WARP = 64, 128, 32
"""Of a warpgroup; and threads of a warp."""

AWAITED_CYCLES = 100.0
"""Of a step's way until it is a warpgroup's turn to ask for its products (group_turns.cuh). Fitted to 38 pairs of schedules with
turns and without, of two attentions and two feed-forward blocks, recorded on an H200: 50 to 170 by each of them alone."""
