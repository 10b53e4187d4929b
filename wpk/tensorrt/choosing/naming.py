"""What an engine's layer says of the ONNX nodes it came from.

TensorRT joins the names of what it fused: ``a + b``, ``a || b`` side by side, ``PWN(a, PWN(b))`` for
point-wise work. The parser writes ``[ONNX Layer: a]`` into the metadata. A layer of TensorRT's
compiler is called ``{ForeignNode[a...b]}``, or ``__myl_Kinds_myl0_3``: third of the region 0.
"""

import re

from wpk.tensorrt.choosing.inspector import EngineLayer

_METADATA = re.compile(r"\[ONNX Layer: (.*?)\](?=$| \+ |\s*\[)")
_STARTS = re.compile(r"^|(?<= \+ )|(?<=\()|(?<=, )|(?<= \|\| )")
_ENDS = re.compile(r"$|(?= \+ )|(?=\))|(?=, )|(?= \|\| )")

_COPY = re.compile(r"^Reformatting CopyNode for (?:Input|Output) Tensor \d+ to (?P<target>.*)$")
_REFORMATTER = re.compile(r"^(?P<target>.*) (?:input|output) reformatter \d+$")
_SHUFFLE = re.compile(
    r"^(?:copied_)?(?:reshape|squeeze|unsqueeze_node|unsqueeze|transpose)_(?:after|before)_(?P<target>.*)$"
)
_INSERTED_KINDS = {"Reformat", "NoOp"}

_REGION = re.compile(r"_(myl\d+)_\d+$")


def nodes_of(layer: EngineLayer, known: frozenset[str]) -> frozenset[str]:
    """The ONNX nodes that a layer computes, as far as it says.

    Args:
        layer: Of an engine.
        known: Names of the nodes that there are; other names are weights, or TensorRT's own.
    """
    return nodes_in(layer.name, known) | {
        name for name in _METADATA.findall(layer.metadata) if name in known
    }


def nodes_in(name: str, known: frozenset[str]) -> frozenset[str]:
    """The known names that a layer's name is joined of; the longest wherever one holds another."""
    starts = [match.start() for match in _STARTS.finditer(name)]
    ends = [match.start() for match in _ENDS.finditer(name)]
    found = set()
    done = 0
    for start in starts:
        if start < done:
            continue
        pieces = (name[start:end] for end in reversed(ends) if end > start)
        longest = next((piece for piece in pieces if piece in known), None)
        if longest is not None:
            found.add(longest)
            done = start + len(longest)
    return frozenset(found)


def inserted_for(layer: EngineLayer) -> str | None:
    """The layer that TensorRT inserted this one for, by its name: a copy into another layout or shape.

    Returns:
        Empty where it is such a copy, but says not for whom; None where it is none. Whether it
        computes a node is to be asked first: a QuantizeLinear is a reformat, too.
    """
    for pattern in (_COPY, _REFORMATTER, _SHUFFLE):
        if match := pattern.match(layer.name):
            return match["target"]
    return "" if layer.kind in _INSERTED_KINDS else None


def is_foreign(layer: EngineLayer) -> bool:
    """Whether a layer is a whole region of TensorRT's compiler, of which only the ends are told."""
    return "ForeignNode[" in layer.name


def region_of(layer: EngineLayer) -> str | None:
    """The region of TensorRT's compiler that a layer belongs to, e.g. ``myl0``; None for others."""
    match = _REGION.search(layer.name)
    return match[1] if match else None
