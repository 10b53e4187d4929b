"""Plans whose reductions are split among blocks: their memory, their counters, and engines that break them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.plans.warm import Warm

from wpk.checks.pass_proof import prove_passes
from wpk.checks.scope import Scope
from wpk.checks.verification import Verification, verify
from wpk.dims import evaluate
from wpk.emulator import Emulator
from wpk.engine import Engine, random_inputs
from wpk.errors import PlanError
from wpk.execution import BoundLaunch, Work
from wpk.launch import CounterArgument
from wpk.lowering.model import lower_model
from wpk.pipeline import optimize
from wpk.plan.binding import counter_bytes, workspace_bytes
from wpk.plan.checks.whole_plan import check_plan
from wpk.plan.plan import PlanBundle, Step
from wpk.plan.plan_file import read_plan

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 64, 5, 4] x) => (float[batch, 10] y)
{
  c = Conv<pads = [1, 1, 1, 1]>(x, w, b)
  r = Relu(c)
  f = Flatten(r)
  y = Gemm(f, m, d)
}
"""
WEIGHTS = {"w": (192, 64, 3, 3), "b": (192,), "m": (3840, 10), "d": (10,)}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A convolution and a product whose outputs are small and whose reductions are long."""
    path = tmp_path_factory.mktemp("split") / "model.onnx"
    rng = np.random.default_rng(4)
    graph = onnx.parser.parse_model(MODEL)
    for name, shape in WEIGHTS.items():
        values = rng.standard_normal(shape).astype(np.float32)
        graph.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    onnx.save(graph, path)
    return path


@pytest.fixture(scope="module", params=["fp32", "fp16"])
def bundle(
    request: pytest.FixtureRequest,
    model: Path,
    tmp_path_factory: pytest.TempPathFactory,
    warm_without_cubins: Warm,
) -> PlanBundle:
    """Its plan, unchecked, for a GPU without clusters, in which parts could meet without counters."""
    path = tmp_path_factory.mktemp("plan") / "model.plan"
    given = {"target": "a100", "precision": request.param, "skip_templates": ["gemm_skinny"]}
    optimize(model, path, check="off", **given)
    return read_plan(path)


def counting(bundle: PlanBundle) -> list[Step]:
    """Steps with counters."""
    return [step for step in bundle.plan.steps if counter_bytes(step, bundle.plan.free)]


def verified(bundle: PlanBundle, model: Path, device: Emulator) -> Verification:
    lowered = lower_model(model, {}, bundle.plan.precision)
    proof = prove_passes(lowered, Scope(seeds=1), lambda *_: None)
    return verify(bundle, proof, device, lambda *_: None)


def test_both_steps_split_and_ask_for_memory_that_grows_with_the_batch(bundle: PlanBundle) -> None:
    steps = counting(bundle)
    assert [dict(step.candidate.configuration)["split"] > 1 for step in steps] == [True, True]
    (name,) = bundle.plan.free
    for step in steps:
        assert workspace_bytes(step, {name: 40}) > workspace_bytes(step, {name: 1}) > 0
        (launch,) = step.launches
        x, y, _ = (evaluate(size, {name: 40}) for size in launch.grid)
        assert counter_bytes(step, {name: 40}) == 4 * x * y  # neither has groups


def test_the_plan_passes_and_an_engine_repeats_itself_at_every_batch(
    bundle: PlanBundle, model: Path
) -> None:
    assert verified(bundle, model, Emulator()).passed
    with Engine(bundle, Emulator()) as engine:
        first = {
            n: engine.run(random_inputs(engine.plan, n, {"batch": n}))["y"] for n in (1, 3, 17)
        }
        again = {
            n: engine.run(random_inputs(engine.plan, n, {"batch": n}))["y"] for n in (3, 1, 17)
        }
    for batch, y in first.items():
        assert np.isfinite(y).all()
        np.testing.assert_array_equal(y, again[batch])


class Forgetful(Emulator):
    """Kernels that leave a counter as it is after the last arrival."""

    def __init__(self, digests: set[str]) -> None:
        super().__init__()
        self.digests = digests

    def launch(self, work: Work) -> None:
        super().launch(work)
        if isinstance(work, BoundLaunch) and work.kernel in self.digests:
            counters = work.arguments[-1].address  # type: ignore[union-attr]
            self.write(counters, np.full(1, 3, np.int32).view(np.uint8))


def test_counters_that_are_left_are_found(bundle: PlanBundle, model: Path) -> None:
    digests = {launch.kernel for step in counting(bundle) for launch in step.launches}
    outcome = verified(bundle, model, Forgetful(digests))
    assert outcome.operators  # each step at each seed and batch
    for each in outcome.operators:
        assert "1 counters were not left zero" in each.check.detail


def test_an_impossible_number_of_counters_is_refused(bundle: PlanBundle) -> None:
    (first, *others) = bundle.plan.steps
    (launch,) = first.launches
    arguments = (*launch.arguments[:-1], CounterArgument(-1))
    step = replace(first, launches=(replace(launch, arguments=arguments),))
    with pytest.raises(PlanError, match=r"count.*-1 is not within"):
        check_plan(replace(bundle.plan, steps=(step, *others)))
