"""Why an operator cannot be lowered."""

import onnx_graphsurgeon as gs


class RefusedError(Exception):
    """An operator cannot be lowered; the message says why, in words.

    Attributes:
        node: The ONNX node inside the operator that stands in the way, where one does.
    """

    def __init__(self, why: str, node: gs.Node | None = None) -> None:
        """Say why, and at which node if that is known."""
        super().__init__(why)
        self.node = node

    def locate(self, node: gs.Node) -> None:
        """Say that the refusal is about ``node``, unless it names a node already."""
        self.node = self.node or node


class UnknownInputError(RefusedError):
    """An operator reads what a refused node would have made; that node's refusal says why."""
