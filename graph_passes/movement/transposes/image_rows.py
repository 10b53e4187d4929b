"""Turn images, not the sequences of their pixels.

    Reshape(Transpose(x, (0, 2, 1)), [b, c, h, w])  ->  Transpose(Reshape(x, [b, h, w, c]), (0, 3, 1, 2))     x: [b, h w, c]
    Transpose(Reshape(z, [b, c, h w]), (0, 2, 1))   ->  Reshape(Transpose(z, (0, 2, 3, 1)), [b, h w, c])      z: [b, c, h, w]

Networks of convolutions and products pass from one to the other so. A Transpose of an image is none once the image
is stored channels last, and it moves behind element-wise nodes (`transposes_behind`), as Reshapes that leave the
channels alone do (`reshapes_behind`).
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import Dims, dims, made_by, why_shared
from wpk.graph_passes.core.reshape_target import reshape_target
from wpk.graph_passes.movement.chains.reshape_chains import RESHAPES, permutation

_LEAST_SPACE = 2
"""Axes of an image; with one it is a sequence."""


@dataclass(frozen=True)
class _Turned:
    """What becomes of two nodes.

    Attributes:
        source: What the first one reads.
        output: What the second one gives.
        between: The shape between the new nodes.
        target: Of the new Reshape, for every batch.
        perm: Of the new Transpose.
        is_image: Whether the source is an image, which is turned first.
    """

    source: gs.Tensor
    output: gs.Tensor
    between: Dims
    target: list[int]
    perm: list[int]
    is_image: bool


class ImageRows(Rule[_Turned]):
    """Swap a Transpose of a sequence of pixels with the Reshape that makes it of an image, or an image of it."""

    name = "image-rows"
    ops = (*RESHAPES, "Transpose")

    def match(self, graph: gs.Graph, node: gs.Node) -> _Turned | Refusal | None:
        """Match both ways, where nothing else reads what is between."""
        first = made_by(node.inputs[0], *(RESHAPES if node.op == "Transpose" else ("Transpose",)))
        turn = node if node.op == "Transpose" else first
        if first is None or turn is None or permutation(turn) != [0, 2, 1]:
            return None
        found = _turned(first, node, is_image=node.op == "Transpose")
        return found and (refusal(node, why_shared(graph, node.inputs[0])) or found)

    def rewrite(self, editor: GraphEditor, match: _Turned) -> None:
        """Write the nodes the other way round."""
        output, shape = match.output, dims(match.output)
        sizes = editor.constant(f"{output.name}_sizes", np.array(match.target, np.int64))
        attrs = {"perm": match.perm}
        if match.is_image:
            image = editor.add(
                "Transpose", [match.source], like=output, shape=match.between, attrs=attrs
            )
            new = editor.add("Reshape", [image, sizes], like=output, shape=shape)
        else:
            image = editor.add("Reshape", [match.source, sizes], like=output, shape=match.between)
            new = editor.add("Transpose", [image], like=output, shape=shape, attrs=attrs)
        editor.replace(output, new)


def _turned(first: gs.Node, second: gs.Node, *, is_image: bool) -> _Turned | None:
    """What becomes of the two nodes, where an image and the sequence of its pixels lie on either side of them."""
    source, output = first.inputs[0], second.outputs[0]
    image, sequence = (dims(each) for each in ((source, output) if is_image else (output, source)))
    if image is None or sequence is None or not _is_image(image, sequence):
        return None
    space = len(image) - 2
    between = [image[0], *image[2:], image[1]]
    target = reshape_target(between, sequence) if is_image else reshape_target(sequence, between)
    perm = [0, *range(2, space + 2), 1] if is_image else [0, space + 1, *range(1, space + 1)]
    if target is None:
        return None
    return _Turned(source, output, between, target, perm, is_image)


def _is_image(image: Dims, sequence: Dims) -> bool:
    """Whether a sequence has an image's batch, pixels and channels, in this order."""
    space = [size for size in image[2:] if isinstance(size, int)]
    return (
        len(space) == len(image) - 2 >= _LEAST_SPACE
        and len(sequence) == 3
        and image[0] is not None
        and [image[0], int(np.prod(space)), image[1]] == sequence
    )
