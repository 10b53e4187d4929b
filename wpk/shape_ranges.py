"""Shapes as people give them: one for each input, or the smallest, the fastest and the largest.

x:1x3x224x224                  a shape; -1 leaves a dimension free
x:1x16:8x128:32x512            trtexec's --minShapes, --optShapes and --maxShapes in one: where the
three differ the dimension stays free between the first and the last
size, and is tuned at the one between
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wpk.errors import GraphError

GRAMMAR = "name:1x3x224x224,other:1x16:8x64:32x512 (-1 leaves a dimension free, MIN:OPT:MAX, too)"

_SHAPE = r"-?\d+(?:x-?\d+)*"
_PART = re.compile(rf"(?P<name>.+?):(?P<shapes>{_SHAPE}:{_SHAPE}:{_SHAPE}|{_SHAPE})")

ShapeRange = tuple[tuple[int, ...], ...]
"""One shape, or the smallest, the fastest and the largest of an input."""


@dataclass(frozen=True)
class SizeRange:
    """Sizes of a free dimension: the smallest, the one to be fastest at, and the largest."""

    smallest: int
    fastest: int
    largest: int


def parse_shapes(text: str) -> dict[str, ShapeRange]:
    """Read the grammar above, inputs apart by commas; a name may be quoted.

    Raises:
        GraphError: The text does not follow the grammar; the message quotes the part that fails.
    """
    shapes: dict[str, ShapeRange] = {}
    for part in text.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise GraphError(f"--shapes cannot read {part!r}", fix=f"write {GRAMMAR}")
        name, given = match["name"].strip("'\""), match["shapes"].split(":")
        ranks = {each.count("x") for each in given}
        if len(ranks) > 1 and match["name"][0] not in "'\"":  # the name has a colon: input:0:1x3
            name, given = ":".join([name, *given[:-1]]), given[-1:]
        if not name:
            raise GraphError(f"--shapes cannot read {part!r}", fix=f"write {GRAMMAR}")
        if name in shapes:
            raise GraphError(f"--shapes names {name!r} twice", fix="name every input once")
        shapes[name] = as_range(name, [[int(size) for size in each.split("x")] for each in given])
    return shapes


def as_range(name: str, given: Sequence[object]) -> ShapeRange:
    """Return one shape, or three, in one form.

    Args:
        name: Of the input.
        given: Sizes, or one or three sequences of them.

    Raises:
        GraphError: It is neither, or three shapes are in no order.
    """
    nested = bool(given) and all(isinstance(each, Sequence) for each in given)
    shapes = given if nested else [given]
    try:
        found = tuple(tuple(int(size) for size in shape) for shape in shapes)  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise GraphError(f"the shape of '{name}' is {given!r}", fix=f"write {GRAMMAR}") from error
    if len(found) not in (1, 3) or len(set(map(len, found))) > 1:
        raise GraphError(
            f"the shapes of '{name}' are {range_words(found)}: neither one shape nor three of a rank",
            fix=f"write {GRAMMAR}",
        )
    for sizes in zip(*found, strict=True):
        ranged = len(set(sizes)) > 1
        if min(sizes) < -1 or (ranged and not 1 <= sizes[0] <= sizes[1] <= sizes[2]):
            raise GraphError(
                f"--shapes gives '{name}' {range_words(found)}: {', '.join(map(str, sizes))} are no "
                "smallest, fastest and largest size",
                fix="give sizes in order, e.g. x:1x16:8x128:32x512",
            )
    return found if len(set(found)) > 1 else found[:1]


def range_words(shapes: Sequence[Sequence[int]]) -> str:
    """Return shapes as the grammar has them."""
    return ":".join("x".join(map(str, shape)) for shape in shapes)


def size_ranges(
    inputs: Mapping[str, Sequence[int | str]], shapes: Mapping[str, Sequence[object]]
) -> dict[str, SizeRange]:
    """Return the ranges of free dimensions that shapes were given for.

    Args:
        inputs: Shapes of a model's inputs; a free dimension is its name.
        shapes: Given for some of them.

    Raises:
        GraphError: A dimension has two ranges.
    """
    found: dict[str, SizeRange] = {}
    for name, given in shapes.items():
        parts = as_range(name, given)
        if len(parts) == 1:
            continue
        for dim, sizes in zip(inputs[name], zip(*parts, strict=True), strict=True):
            asked = isinstance(dim, str) and sizes[0] != -1
            if asked and found.setdefault(str(dim), SizeRange(*sizes)) != SizeRange(*sizes):
                raise GraphError(
                    f"--shapes gives the dimension '{dim}' two ranges, the second for '{name}'",
                    fix="give every input with this dimension the same three sizes",
                )
    return found
