"""A plan of a small network: real operators, schedules and launches; evidence made up."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from wpk.build import KernelResources
from wpk.dtypes import Precision, from_numpy
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model
from wpk.lowering.program import NodeRecord, Operator, Program
from wpk.plan.memory import plan_memory
from wpk.plan.order import Order
from wpk.plan.plan import (
    SCHEMA,
    Check,
    CheckMode,
    Evidence,
    Funnel,
    Kernel,
    Memory,
    Outcome,
    Plan,
    PlanBundle,
    Port,
    Step,
    Weight,
)
from wpk.plan.provenance import PassSummary, Provenance, RefusalSummary
from wpk.problems import Convolution, Matmul
from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.gather import gather
from wpk.schedules.packings import packed_shape
from wpk.schedules.registry import TEMPLATE_OF, TEMPLATES
from wpk.search.models.static_search import Finalist, shortlist_all
from wpk.targets.registry import find_target

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 8, 12, 12] x) => (float[1, 5] y)
{
  [stem] a = Conv<pads = [1, 1, 1, 1]>(x, stem_w)
  [norm] n = BatchNormalization(a, scale, shift, mean, variance)
  [stem_relu] r = Relu(n)
  [branch] b = Conv<pads = [1, 1, 1, 1]>(r, branch_w, branch_b)
  [sum] s = Add(b, r)
  [sum_relu] t = Relu(s)
  [pool] p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(t)
  [nothing] i = Identity(p)
  [mean_all] m = GlobalAveragePool(i)
  [flat] f = Flatten(m)
  [fc] l = Gemm(f, fc_w, fc_b)
  [prob] y = Softmax<axis = 1>(l)
}
"""

SHAPES = {
    "stem_w": (16, 8, 3, 3),
    **dict.fromkeys(("scale", "shift", "mean", "variance"), (16,)),
    "branch_w": (16, 16, 3, 3),
    "branch_b": (16,),
    "fc_w": (16, 5),
    "fc_b": (5,),
}


@pytest.fixture(scope="session")
def lowered(tmp_path_factory: pytest.TempPathFactory) -> LoweredModel:
    """The network after passes and lowering."""
    model = onnx.parser.parse_model(MODEL)
    rng = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        weight = rng.uniform(0.5, 1.5, shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    path = tmp_path_factory.mktemp("model") / "small.onnx"
    onnx.save(model, path)
    return lower_model(path, {}, Precision.FP16)


@pytest.fixture(scope="session")
def bundle(lowered: LoweredModel) -> PlanBundle:
    """The plan, its sources and no machine code."""
    steps, kernels, sources = [], {}, {}
    for operator in lowered.program.operators:
        finalist = shortlist_all(operator.problem, TEMPLATES, find_target("h200")).finalists(
            count=1
        )[0]
        steps.append(_step(operator, finalist))
        for source in finalist.sources:
            sources[source.digest] = source.text
            kernels[source.digest] = _kernel(source.digest, source.entry, operator)
    return PlanBundle(_plan(lowered, tuple(steps), kernels), {}, {}, sources)


def _step(operator: Operator, finalist: Finalist) -> Step:
    template = finalist.template
    funnels = (
        Funnel(template.name, "", 2000, 600, 8, 4),
        Funnel("other", "k must be even", 0, 0, 0, 0),
    )
    estimate = finalist.prediction.estimate
    return Step(
        operator,
        operator.inputs,
        finalist.candidate,
        finalist.launches,
        0,
        Evidence(
            estimate / 4,
            "L2",
            estimate,
            finalist.prediction.score,
            funnels,
            (Check("float64 reference", Outcome.OK, "worst error 0.100 of the tolerance"),),
        ),
    )


def _kernel(digest: str, entry: str, operator: Operator) -> Kernel:
    matrix = isinstance(operator.problem, Convolution | Matmul)
    return Kernel(
        digest,
        entry,
        "nvrtc 13.5",
        "0" * 64,
        "1" * 64,
        KernelResources(40, 128, 0, 0, 0),
        {"hmma.f16": 16} if matrix else {},
    )


def _plan(lowered: LoweredModel, steps: tuple[Step, ...], kernels: dict[str, Kernel]) -> Plan:
    program = lowered.program
    return Plan(
        schema=SCHEMA,
        wpk="0.1.0",
        target="h200",
        arch="sm_90a",
        precision=Precision.FP16,
        free=program.free,
        inputs=_ports(program, program.inputs),
        outputs=_ports(program, program.outputs),
        values=program.values,
        buffers=program.buffers,
        weights=_weights(program, steps),
        steps=steps,
        kernels=kernels,
        memory=_memory(program),
        provenance=Provenance(
            model="small.onnx",
            model_digest="2" * 64,
            opset=17,
            shapes={},
            skipped_passes=("dead-code",),
            passes=(
                PassSummary("fold", 2, (RefusalSummary("branch", "its weight is shared"),), False),
                PassSummary("idle", 0, (), False),
                PassSummary("dead-code", 0, (), True),
            ),
            before=lowered.before,
            after=lowered.after,
        ),
        checks=(Check("ONNX Runtime, seed 0", Outcome.OK, "'y' median 1.0e-04, worst 1.0e-03"),),
        check_mode=CheckMode.ON,
    )


def _ports(program: Program, names: tuple[str, ...]) -> tuple[Port, ...]:
    values = [program.values[name] for name in names]
    return tuple(Port(value.name, value.dtype, value.logical_shape) for value in values)


def _weights(program: Program, steps: tuple[Step, ...]) -> dict[str, Weight]:
    weights = {}
    for name, array in program.constants.items():
        dtype = from_numpy(array.dtype)
        assert dtype is not None
        weights[name] = Weight(name, name, None, dtype, array.shape, "3" * 64)
    for step in steps:
        problem, candidate = step.operator.problem, step.candidate
        template = TEMPLATE_OF[candidate.maker.name]
        packing = template.packing(problem, template.schedule_from(candidate.configuration))
        if packing is not None:
            weight = weights[step.inputs[1]]
            shape = packed_shape(packing, problem, weight.dtype.bytes)
            weights[weight.name] = replace(weight, packing=packing, shape=shape)
    return weights


def _memory(program: Program) -> Memory:
    order = Order(program.values, program.operators)
    pinned = (*program.inputs, *program.outputs)
    arena = plan_memory(program.buffers, program.values, order, pinned, program.free)
    weights = sum(array.nbytes for array in program.constants.values())
    return Memory(arena.bytes, arena.peak_bytes, weights)


@pytest.fixture(scope="session")
def facts(bundle: PlanBundle) -> ReportFacts:
    """What a report says about the plan."""
    return gather(bundle)


@pytest.fixture
def hostile(bundle: PlanBundle) -> PlanBundle:
    """The plan of a model whose names were chosen to break a page, a table and a terminal."""
    bad = "</script><img src=x onerror=alert(1)>\"'`|\x1b[2J\u202e\ud800 & ]]>"
    steps = tuple(
        replace(
            step,
            operator=replace(
                step.operator, name=f"{number}{bad}", nodes=(*step.operator.nodes, bad), note=bad
            ),
            inputs=step.inputs,
        )
        for number, step in enumerate(bundle.plan.steps)
    )
    origin = replace(
        bundle.plan.provenance,
        model=bad,
        before=(*bundle.plan.provenance.before, NodeRecord(f"{bad} stray", bad, (), (bad,))),
        passes=(PassSummary("fold", 1, (RefusalSummary(bad, bad),), False),),
    )
    checks = (Check(bad, Outcome.FAILED, bad),)
    plan = replace(bundle.plan, steps=steps, provenance=origin, checks=checks)
    return replace(bundle, plan=plan, sources=dict.fromkeys(bundle.sources, f"// {bad}\n\tx;\n"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where reports are written."""
    return tmp_path
