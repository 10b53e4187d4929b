"""All faults planted in graph passes."""

from __future__ import annotations

from support.faults.graph_passes import (
    byte_products,
    constants,
    convolutions,
    exported,
    free_lengths,
    image_rows,
    linear,
    movement,
    networks,
    operators,
    patches,
    quantised,
    recognition,
    recurrent,
    sizes,
)
from support.faults.graph_passes.broken_pass import BrokenPass

KIT: tuple[BrokenPass, ...] = (
    *linear.FAULTS,
    *constants.FAULTS,
    *convolutions.FAULTS,
    *recognition.FAULTS,
    *recurrent.FAULTS,
    *movement.FAULTS,
    *sizes.FAULTS,
    *free_lengths.FAULTS,
    *image_rows.FAULTS,
    *exported.FAULTS,
    *operators.FAULTS,
    *patches.FAULTS,
    *byte_products.FAULTS,
    *quantised.FAULTS,
    *networks.FAULTS,
)
