"""The graph before and after: the model's nodes beside the operator that computes them.

Each operator is a row; lanes beside the rows carry every value from the operator that makes it to
those that read it, so that a residual connection is a line that passes the rows between.
"""

from collections import defaultdict
from collections.abc import Sequence

from wpk.report.plans.facts import OperatorFacts, ReportFacts
from wpk.report.plans.page.lanes import Lane, assign_lanes
from wpk.report.plans.page.marks import breakable, kind_class
from wpk.report.plans.page.markup import Html, section, stretched, tag
from wpk.report.plans.tracing import NodeFacts

_LANE = 9
"""Pixels from lane to lane."""

_NAME = 44
"""Most characters of a name; the whole one is in the tooltip."""

_NOWHERE = -1
"""Where `NodeFacts.near` says that nothing reads a node."""

_NodesByOperator = defaultdict[int, list[NodeFacts]]


def graph_section(facts: ReportFacts) -> Html:
    """Return rows of nodes before and operator after, with lanes."""
    lanes = assign_lanes([operator.reads for operator in facts.operators])
    count = max((lane.place for lane in lanes), default=0) + 1
    nodes = _by_operator(facts.nodes)
    rows = [
        _row(number, operator, nodes[number], lanes, count)
        for number, operator in enumerate(facts.operators)
    ]
    graph = tag("div", *rows, class_="graph")
    unread = _unread(nodes[_NOWHERE])
    return section("graph", "Graph before and after", _legend(facts), graph, unread)


def _legend(facts: ReportFacts) -> Html:
    removed = sum(not node.operators for node in facts.nodes)
    words = (
        f"{len(facts.nodes)} ONNX nodes, in the model's order, became {len(facts.operators)} operators. "
        f"Dashed: removed by the passes ({removed}), shown where their work went; +n: nodes that the passes "
        "made. Lines carry values from operator to operator. Touch anything to see what belongs together."
    )
    return tag("p", words, class_="legend")


def _by_operator(nodes: Sequence[NodeFacts]) -> _NodesByOperator:
    """The nodes that an operator computes and those whose work went there, in the model's order."""
    found = _NodesByOperator(list)
    for node in nodes:
        for number in node.operators or (node.near,):
            found[number].append(node)
    return found


def _row(
    number: int,
    operator: OperatorFacts,
    nodes: Sequence[NodeFacts],
    lanes: Sequence[Lane],
    count: int,
) -> Html:
    chips = [
        _chip(node, node.operators, "") if node.operators else _chip(node, (number,), " removed")
        for node in nodes
    ]
    made = set(operator.nodes) - {node.name for node in nodes}
    if made:
        title = ", ".join(sorted(made))
        chips.append(
            tag("li", f"+{len(made)}", class_="made", title=f"made by passes: {title[:400]}")
        )
    after = tag(
        "a",
        tag("b", breakable(operator.name)),
        tag("small", operator.work),
        href=f"#operator-{number}",
        class_=f"after {kind_class(operator.kind)}",
    )
    parts = (tag("ul", *chips, class_="chips"), _gutter(number, lanes, count), after)
    return tag("div", *parts, class_="pair", data_ops=number)


def _chip(node: NodeFacts, operators: Sequence[int], extra: str) -> Html:
    shared = f", in {len(operators)} operators" if len(operators) > 1 else ""
    return tag(
        "li",
        tag("b", node.operator),
        " ",
        tag("span", node.name if len(node.name) <= _NAME else f"…{node.name[-_NAME:]}"),
        class_=f"chip {kind_class(node.kind)}{extra}",
        title=f"{node.operator} {node.name[:400]}{shared}{extra}",
        data_ops=" ".join(map(str, operators)),
    )


def _gutter(number: int, lanes: Sequence[Lane], count: int) -> Html:
    """The piece of every lane that this row shows, stretched to the row's height."""
    width = _LANE * (count + 1)
    paths = [
        tag("path", d=piece, vector_effect="non-scaling-stroke")
        for lane in lanes
        for piece in _pieces(number, lane)
    ]
    drawing = stretched(paths, width, 100)
    dot = tag("i", style=f"left:{_LANE}px")
    return tag("div", drawing, dot, class_="gutter", style=f"width:{width}px")


def _pieces(number: int, lane: Lane) -> list[str]:
    x, spine = _LANE * (lane.place + 1), _LANE
    pieces = []
    if number == lane.first:
        pieces.append(f"M{spine} 50C{spine} 80 {x} 70 {x} 100")
    elif number in lane.readers:
        pieces.append(f"M{x} 0C{x} 30 {spine} 20 {spine} 50")
    if lane.first < number < lane.last:
        pieces.append(f"M{x} 0V100")
    return pieces


def _unread(nodes: Sequence[NodeFacts]) -> Html | str:
    if not nodes:
        return ""
    chips = [_chip(node, (), " removed") for node in nodes]
    words = tag("p", "Nodes that nothing reads any more:", class_="legend")
    return tag("div", words, tag("ul", *chips, class_="chips"))
