"""The passes of one form, run group by group on one graph."""

from collections.abc import Callable

import onnx_graphsurgeon as gs

from wpk.graph_passes import KnownTypes, PassRecord, pass_groups, run_passes
from wpk.lowering.lowered_model import Source
from wpk.progress import Progress

Observer = Callable[[str, gs.Graph], None]
"""Called with the name of a pass that has rewritten, and the graph as it is behind it."""


class GroupRun:
    """The passes of one form, group by group.

    Attributes:
        groups: The passes.
    """

    def __init__(
        self,
        source: Source,
        progress: Progress,
        observe: Observer | None = None,
        known: KnownTypes | None = None,
    ) -> None:
        """Make the passes of a form.

        Args:
            source: What says which they are.
            progress: Told of each group.
            observe: Told of each pass that has rewritten.
            known: What was inferred of the model's nodes before, where shapes of the graph are inferred already.
        """
        self.groups = pass_groups(source.precision, source.changed, source.features)
        self._names = {each.name for group in self.groups for each in group}
        self._skip, self._progress, self._observe = source.skip, progress, observe
        self._inferred = known is not None
        self._known = KnownTypes() if known is None else known

    def of(self, place: int, graph: gs.Graph) -> list[PassRecord]:
        """Run a group."""
        observe = self._observe

        def told(name: str, number: int, rewritten: int) -> None:
            del number
            if rewritten and observe is not None:
                observe(name, graph)

        self._progress("graph passes", place, len(self.groups))
        group = self.groups[place]
        inferred, self._inferred = self._inferred, True
        return run_passes(
            graph,
            group,
            self._skip,
            told,
            other_passes=self._names,
            known=self._known,
            inferred=inferred,
        )
