"""All faults planted in graph passes."""

from __future__ import annotations

from support.faults.faulty_passes import Fault
from support.faults.graph_passes import (
    constants,
    linear,
    movement,
    networks,
    operators,
    recognition,
)

KIT: tuple[Fault, ...] = (
    *linear.FAULTS,
    *constants.FAULTS,
    *recognition.FAULTS,
    *movement.FAULTS,
    *operators.FAULTS,
    *networks.FAULTS,
)
