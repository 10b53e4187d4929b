"""Cast at once what was cast through a type that holds it.

    Cast(Cast(x, t), u)  ->  Cast(x, u)        every number of x's type is one of t

scikit-learn's exporter writes the classes that it looked up so, int32 through fp64 to int64. Where u holds
fewer integers than x's type, only one through integers goes: numbers beyond u wrap around as integers do.
"""

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import DTypeLike

from wpk.graph_passes.core import Refusal, Replacement, ReplacementRule
from wpk.graph_passes.core.query import element_type, made_by


class CastChains(ReplacementRule):
    """Leave the first of two casts out where it loses nothing."""

    name = "cast-chains"
    ops = ("Cast",)

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | Refusal | None:
        """Match a cast of a cast."""
        del graph
        first = made_by(node.inputs[0], "Cast")
        if first is None:
            return None
        types = [element_type(each) for each in (first.inputs[0], *first.outputs, *node.outputs)]
        if any(each is None or isinstance(each, int) for each in types):
            return None
        source, middle, last = types
        if not _holds(middle, source):
            reason = f"not every {np.dtype(source)} is a {np.dtype(middle)}"
            return Refusal(node.name, reason)
        whole = _is_whole(last) and _is_whole(source) and not _is_whole(middle)
        if whole and not _holds(last, source):
            reason = f"what of {np.dtype(source)} lies beyond {np.dtype(last)} wraps around"
            return Refusal(node.name, reason)
        return Replacement(node.outputs[0], "Cast", [first.inputs[0]], dict(node.attrs))


def _is_whole(dtype: DTypeLike) -> bool:
    return np.issubdtype(np.dtype(dtype), np.integer)


def _holds(wide: DTypeLike, narrow: DTypeLike) -> bool:
    """Whether every number of one type is one of the other; NumPy takes int64 to fp64 for safe."""
    wide, narrow = np.dtype(wide), np.dtype(narrow)
    if not np.can_cast(narrow, wide, "safe"):
        return False
    if not (_is_whole(narrow) and np.issubdtype(wide, np.floating)):
        return True
    most, least = int(np.iinfo(narrow).max), int(np.iinfo(narrow).min)
    return bool(max(most, -least) <= 2 ** (np.finfo(wide).nmant + 1))
