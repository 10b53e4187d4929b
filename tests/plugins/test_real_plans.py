"""A plan of real kernels: ``wpk-run`` asks the driver, here its double, for what Python's engine asks for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from pathlib import Path

import pytest
from support.each_value import each_value
from support.launches.recorded_lines import line_of, lines_of_maps
from support.networks import handwritten
from support.networks.branching import write_branching
from support.plans.warm import Warm
from support.plugins import run_plan

from wpk.engine.bindings import Bindings
from wpk.engine.port_memory import replaceable
from wpk.execution import BoundLaunch, Bytes, Image, OneByOne, Predecessors, Work
from wpk.launch import EARLY_LAUNCH
from wpk.pipeline import optimize
from wpk.plan import Plan
from wpk.plan.memory import aligned
from wpk.plan.plan_file import read_plan
from wpk.runtime import RuntimeProcess

driver = pytest.importorskip("cuda.bindings.driver", reason="needs cuda-bindings (extra gpu)")


@dataclass
class Asked:
    """A device that executes nothing, and remembers what it is to capture.

    Attributes:
        places: Addresses of the allocations to come.
        recorded_sizes: What the double was asked for at those places.
        sizes: Bytes of those that were made.
        works: What was captured.
        predecessors: What each piece of it follows.
    """

    places: list[int]
    recorded_sizes: list[int] = field(default_factory=list)
    name: str = "asked"
    executes_source: bool = False
    sizes: list[int] = field(default_factory=list)
    works: list[BoundLaunch] = field(default_factory=list)
    predecessors: list[tuple[int, ...]] = field(default_factory=list)

    def allocate(self, size: int) -> int:
        self.sizes.append(size)
        return self.places.pop(0)

    def free(self, address: int) -> None:
        raise AssertionError("nothing is to be given back")

    def load(self, image: Image) -> None:
        raise AssertionError("nothing is to be loaded")

    def write(self, address: int, data: Bytes) -> None:
        pass

    def fill(self, address: int, size: int, byte: int) -> None:
        pass

    def read(self, address: int, size: int) -> Bytes:
        raise AssertionError("there is nothing to read")

    def launch(self, work: Work) -> None:
        raise AssertionError("nothing is to be launched")

    def capture(self, works: Sequence[Work], predecessors: Predecessors | None = None) -> OneByOne:
        assert predecessors is not None
        self.works = [each for each in works if isinstance(each, BoundLaunch)]
        self.predecessors = [tuple(each) for each in predecessors]
        return OneByOne(self.launch, works)

    def synchronize(self) -> None:
        pass


@dataclass(frozen=True)
class Recorded:
    """What the double recorded of ``wpk-run``."""

    calls: list[str]

    def lines(self, *names: str) -> list[str]:
        return [line for line in self.calls if line.startswith(names)]

    def memory(self) -> list[tuple[int, int]]:
        """Size and address of each allocation on the GPU."""
        pairs = zip(self.calls, self.calls[1:], strict=False)
        return [
            (int(line.split()[1]), int(answer.split()[1]))
            for line, answer in pairs
            if line.startswith("cuMemAlloc ")
        ]


def weight_places(plan: Plan, begin: int) -> dict[str, int]:
    """Addresses of the weights: one behind the other, in the order of their names."""
    places, at = {}, begin
    for name, weight in sorted(plan.weights.items()):
        places[name] = at
        at += aligned(prod(weight.shape) * weight.dtype.bytes)
    return places


def by_python(plan: Plan, recorded: Recorded, dims: dict[str, int]) -> Asked:
    """What Python's engine captures, with memory at the double's addresses."""
    (_, weights), *others = recorded.memory()
    ports = [port.name for port in (*plan.inputs, *plan.outputs)]
    addresses = [address for _, address in others]
    device = Asked(addresses[len(ports) :])
    outside = replaceable(plan, dims)
    external = {name: at for name, at in zip(ports, addresses, strict=False) if name in outside}
    Bindings(plan, device, weight_places(plan, weights), lambda: None, RuntimeProcess({})).at(
        dims, external
    )
    device.recorded_sizes = [size for size, _ in others[len(ports) :]]
    return device


def edges(asked: Asked, copies: tuple[int, int]) -> list[str]:
    """Nodes of the graph with what they follow; copies of inputs in front of it, of outputs behind it."""
    before, after = copies
    nodes = [("copy", (n - 1,) if n else ()) for n in range(before)]
    roots = (before - 1,) if before else ()
    followed = {other for others in asked.predecessors for other in others}
    for others in asked.predecessors:
        nodes.append(("launch", tuple(before + other for other in others) or roots))
    front = [before + n for n in range(len(asked.works)) if n not in followed]
    for _ in range(after):
        nodes.append(("copy", tuple(front)))
        front = [len(nodes) - 1]
    said = [f"node {n} {kind} after" for n, (kind, _) in enumerate(nodes)]
    return [" ".join([line, *map(str, b)]) for line, (_, b) in zip(said, nodes, strict=True)]


def written(name: str, path: Path) -> Path:
    """A network written by hand, in a folder."""
    return handwritten.write(name, path.parent)


NETWORKS = {
    "branching": write_branching,
    **{
        name: partial(written, name)
        for name in ("dense_concat", "attention_with_mask", "channels_58")
    },
}


PLANS = [
    pytest.param(each.values, marks=each.marks) for each in each_value(NETWORKS, ["fp16", "fp32"])
]


@pytest.fixture(scope="module", params=PLANS)
def plan(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, warm: Warm
) -> Path:
    """The plan of a small network with a free batch."""
    del warm
    name, precision = request.param
    folder = tmp_path_factory.mktemp(f"{name}.{precision}")
    model = NETWORKS[name](folder / "m.onnx")
    optimize(model, folder / "m.plan", target="h200", precision=precision, check="off")
    return folder / "m.plan"


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 5])
def test_the_driver_is_asked_for_what_pythons_engine_asks_for(
    sanitized: Path, plan: Path, batch: int
) -> None:
    executed = read_plan(plan).plan
    (free,) = executed.free
    ran = run_plan(sanitized, plan, "--dim", f"{free}={batch}")
    assert ran.code == 0, ran.error
    recorded = Recorded(ran.calls)
    assert not recorded.lines("wrong")
    asked = by_python(executed, recorded, {free: batch})
    assert recorded.lines("cuLaunchKernelEx") == [line_of(driver, each) for each in asked.works]
    assert recorded.lines("cuTensorMapEncode") == list(lines_of_maps(driver, asked.works))
    inputs, outputs = (
        sum(port.name not in replaceable(executed, {free: batch}) for port in ports)
        for ports in (executed.inputs, executed.outputs)
    )
    assert recorded.lines("node") == edges(asked, (inputs, outputs))
    assert asked.sizes == asked.recorded_sizes
    assert any(EARLY_LAUNCH in each.attributes for each in asked.works)


@pytest.mark.slow
def test_other_sizes_and_another_order_are_noticed(sanitized: Path, plan: Path) -> None:
    """The negative control."""
    executed = read_plan(plan).plan
    (free,) = executed.free
    recorded = Recorded(run_plan(sanitized, plan, "--dim", f"{free}=3").calls)
    asked = by_python(executed, recorded, {free: 4})
    lines = [line_of(driver, each) for each in asked.works]
    assert len(lines) == len(recorded.lines("cuLaunchKernelEx"))
    assert lines != recorded.lines("cuLaunchKernelEx")
    asked.predecessors = [()] * len(asked.works)
    assert edges(asked, (0, 0)) != recorded.lines("node")
