"""All faults planted in graph passes."""

from __future__ import annotations

from support.faults.graph_passes import (
    constants,
    exported,
    linear,
    movement,
    networks,
    operators,
    quantised,
    recognition,
    recurrent,
    sizes,
)
from support.faults.graph_passes.broken_pass import BrokenPass

KIT: tuple[BrokenPass, ...] = (
    *linear.FAULTS,
    *constants.FAULTS,
    *recognition.FAULTS,
    *recurrent.FAULTS,
    *movement.FAULTS,
    *sizes.FAULTS,
    *exported.FAULTS,
    *operators.FAULTS,
    *quantised.FAULTS,
    *networks.FAULTS,
)
