"""Edges of a graph that is captured, and what is asked of the driver for them: on a stand-in for its stream."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from wpk.device import capture_order
from wpk.device.capture_order import put_in_order
from wpk.execution import BoundCall, BoundLaunch, Predecessors, Work

LAUNCH = BoundLaunch("k", "k", (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, (), ())
CALL = BoundCall("c", (), 0)


class Stream:
    """Nodes follow what is in front; a call makes two that follow each other.

    Attributes:
        edges: From node to node, by the numbers of the work that they belong to.
        asked: How often somebody looked at what is in front.
        behind_kernels: Of each work, whether it was said to be behind a kernel.
    """

    def __init__(self, works: Sequence[Work]) -> None:
        self.works, self.front = works, list[Any]()
        self.edges: set[tuple[int, int]] = set()
        self.asked = 0
        self.behind_kernels: list[bool] = []

    def start(self, work: Work, behind_kernel: bool) -> None:
        number = len(self.behind_kernels)
        assert work is self.works[number]
        self.behind_kernels.append(behind_kernel)
        for part in range(1 + isinstance(work, BoundCall)):
            if part == 0:
                self.edges |= {(node.work, number) for node in self.front}
            self.front = [SimpleNamespace(work=number, part=part)]

    def captured(self, _: int) -> tuple[Any, Sequence[Any]]:
        self.asked += 1
        return "graph", list(self.front)

    def set_front(self, _: int, nodes: Sequence[Any]) -> None:
        self.front = list(nodes)


def captured(
    works: Sequence[Work], predecessors: Predecessors | None, monkeypatch: pytest.MonkeyPatch
) -> Stream:
    stream = Stream(works)
    monkeypatch.setattr(capture_order, "_captured", stream.captured)
    monkeypatch.setattr(capture_order, "_set_front", stream.set_front)
    put_in_order(7, works, predecessors, stream.start)
    return stream


def test_any_order_gives_its_edges_and_ends_with_what_nobody_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        count = int(rng.integers(1, 9))
        works = [LAUNCH if rng.random() < 0.6 else CALL for _ in range(count)]
        before = [
            tuple(int(other) for other in range(number) if rng.random() < 0.4)
            for number in range(count)
        ]
        stream = captured(works, before, monkeypatch)
        assert stream.edges == {(other, n) for n, others in enumerate(before) for other in others}
        followed = {other for others in before for other in others}
        assert {node.work for node in stream.front} == set(range(count)) - followed
        expected = [any(works[other] is LAUNCH for other in others) for others in before]
        assert stream.behind_kernels == expected


def test_a_chain_asks_the_driver_once_however_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = captured([LAUNCH] * 50, None, monkeypatch)
    assert stream.edges == {(number, number + 1) for number in range(49)}
    assert stream.asked == 1
