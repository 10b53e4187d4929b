"""Places at which a pass has a choice, named by what they are and not by where they are.

A pass that is a choice asks at each such place (`wpk.graph_passes.core.base.GraphPass.takes`) whether to
do what it usually does. Its key is a digest of the structure of the nodes that it decides over: operators,
attributes, types and shapes, and how they are connected. Equal places, such as those of the layers of an
encoder, have equal keys, and so they are one decision. Names and weights do not enter.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import dims, element_type

ALL = "*"
"""In place of a digest: every site of a pass."""

_DIGEST = 16


@dataclass(frozen=True)
class Site:
    """A place at which a pass has a choice.

    Attributes:
        key: The pass, and a digest of what is decided over; equal for equal places.
        nodes: Names of the nodes that are decided over.
        words: What is so if nothing is changed here, as a clause.
    """

    key: str
    nodes: tuple[str, ...]
    words: str

    @property
    def pass_name(self) -> str:
        """The pass whose choice it is."""
        return pass_of(self.key)


def pass_of(key: str) -> str:
    """Return the name of the pass that a key begins with."""
    return key.partition(":")[0]


def every_site(name: str) -> str:
    """Return the key that stands for all sites of a pass."""
    return f"{name}:{ALL}"


def site_of(name: str, nodes: Sequence[gs.Node], words: str) -> Site:
    """Describe a choice of a pass over some nodes, given in an order that equal places share."""
    return Site(f"{name}:{structure(nodes, words)}", tuple(n.name for n in nodes), words)


def named_site(name: str, described: object, nodes: tuple[str, ...], words: str) -> Site:
    """Describe a choice by plain data that equal places share."""
    return Site(f"{name}:{_digest(described)}", nodes, words)


def _digest(described: object) -> str:
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:_DIGEST]


def is_changed(site: Site, changed: Collection[str]) -> bool:
    """Whether a site is decided otherwise than usually, by its key or with all of its pass."""
    return site.key in changed or every_site(site.pass_name) in changed


def structure(nodes: Iterable[gs.Node], words: str = "") -> str:
    """Return a digest of operators, attributes, types, shapes and connections."""
    numbers: dict[int, int] = {}
    lines: list[object] = [words]
    for node in nodes:
        tensors = [[_tensor(t, numbers) for t in side] for side in (node.inputs, node.outputs)]
        attrs = sorted((key, _value(value)) for key, value in node.attrs.items())
        lines.append([node.domain or "", node.op, attrs, *tensors])
    return _digest(lines)


def _tensor(tensor: gs.Tensor, numbers: dict[int, int]) -> list[object]:
    """A tensor by the order of its appearance, its type and its shape; of one number, its value too."""
    if tensor.is_empty():
        return []
    number = numbers.setdefault(id(tensor), len(numbers))
    shape = [str(size) for size in dims(tensor) or ["?"]]
    described: list[object] = [number, _type_words(element_type(tensor)), shape]
    if isinstance(tensor, gs.Constant):
        single = prod(tensor.shape) == 1
        described.append(_value(tensor.values) if single else "constant")
    return described


@lru_cache(maxsize=64, typed=True)  # NumPy puts the name of a type together each time
def _type_words(element_type: object) -> str:
    return str(element_type)


def _value(value: object) -> str:
    """An attribute or a number as text; arrays by their bytes."""
    if isinstance(value, gs.Constant):
        value = value.values
    if isinstance(value, np.ndarray):
        content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"{value.dtype} {value.shape} {content}"
    if isinstance(value, gs.Graph):
        return structure(value.nodes)
    return str(value)
