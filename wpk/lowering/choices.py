"""What lowering decides by a choice, as passes do: a plan may be faster without."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import onnx_graphsurgeon as gs

from wpk.graph_passes import Site, is_changed, named_site

PADDED_ROWS = "padded-rows"
"""Rows of channels that a convolution reads are filled up to whole vectors."""

NAMES = (PADDED_ROWS,)
"""What keys of lowering's sites begin with."""

_PADDED = "rows of channels are padded to whole vectors"


@dataclass
class LoweringChoices:
    """What is decided, and where.

    Attributes:
        changed: Keys of the sites that are decided otherwise than usually.
        sites: Those that were asked about.
    """

    changed: Collection[str] = frozenset()
    sites: dict[Site, None] = field(default_factory=dict)

    def pads(self, tensor: gs.Tensor) -> bool:
        """Whether a tensor's rows are padded: its type and sizes decide, and who writes and who reads it."""
        around = [node.op.rstrip("_0123456789") for node in (*tensor.inputs, *tensor.outputs)]
        described = [str(tensor.dtype), list(map(str, tensor.shape[1:])), around]
        site = named_site(PADDED_ROWS, described, (tensor.name,), _PADDED)
        self.sites[site] = None
        return not is_changed(site, self.changed)
