"""Control flow whose bodies are models of their own, to be made engines and driven one by one.

A node comes as a closed model (`wpk.closed_models`) of one node. Its inputs are what the node and its bodies
read, its initializers are constants of these, and its outputs are the node's outputs that somebody reads.
"""

from wpk.control_flow.endless import may_end
from wpk.control_flow.fits import Ports, require_driven, require_ports
from wpk.control_flow.reading import read_control_flow, sized_by_bodies
from wpk.control_flow.types import (
    MAX_DEPTH,
    OPERATORS,
    Body,
    Collected,
    Conditional,
    ControlFlow,
    NotDrivenError,
    Size,
    Sliced,
    Source,
    Turns,
    known_shape,
)
