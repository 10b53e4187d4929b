"""What no kernel computes, handed to ONNX Runtime: which nodes, grouped how, as which models."""

from wpk.lowering.fallback.closing import is_fallback
from wpk.lowering.fallback.hand_over import HandOver
from wpk.lowering.fallback.operators import lower_fallback
