"""Plans that somebody changed, given to the command line: words, the right exit code, no traceback."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from support.plans.forged_plans import members, rewrite

from wpk.plan.plan import PlanBundle
from wpk.plan.plan_file import read_plan, write_plan

Refused = Callable[..., str]


def exchanged(bundle: PlanBundle) -> PlanBundle:
    """The plan with the machine code of one kernel in another, under consistent digests."""
    first, second, *_ = bundle.plan.kernels
    cubin = bundle.cubins[second]
    kernel = replace(bundle.plan.kernels[first], cubin_digest=sha256(cubin).hexdigest())
    plan = replace(bundle.plan, kernels={**bundle.plan.kernels, first: kernel})
    return replace(bundle, plan=plan, cubins={**bundle.cubins, first: cubin})


def from_another_compiler(bundle: PlanBundle) -> PlanBundle:
    kernels = {n: replace(k, compiler="nvrtc 12.9-1") for n, k in bundle.plan.kernels.items()}
    return replace(bundle, plan=replace(bundle.plan, kernels=kernels))


def test_verify_says_that_machine_code_is_the_same(
    wpk: Callable[..., object], plan: Path, model: Path
) -> None:
    result = wpk("verify", plan, model, "--device", "cpu", "--check", "quick")
    assert "machine code: same: " in result.out  # type: ignore[attr-defined]


def test_verify_finds_machine_code_of_another_kernel(
    refused: Refused, plan: Path, model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "forged.plan"
    write_plan(path, exchanged(read_plan(plan)))
    message = refused("verify", path, model, "--device", "cpu", "--check", "quick", code=3)
    assert "the plan's machine code is not what its sources give" in message


def test_verify_does_not_call_ok_what_it_cannot_compare(
    wpk: Callable[..., object], plan: Path, model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "foreign.plan"
    write_plan(path, from_another_compiler(exchanged(read_plan(plan))))
    result = wpk("verify", path, model, "--device", "cpu", "--check", "quick")
    said = next(line for line in result.out.splitlines() if line.startswith("machine code"))  # type: ignore[attr-defined]
    assert said.startswith("machine code: not comparable: made by nvrtc 12.9-1, here nvrtc ")
    assert "ok" not in said.split()


@pytest.mark.parametrize("command", ["run", "verify", "inspect", "report"])
def test_a_plan_without_outputs_is_refused_in_words(
    refused: Refused, plan: Path, model: Path, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "bad.plan"
    contents = members(plan)
    text = contents["plan.json"].decode()
    begin = text.index(' "outputs": [\n  {')
    end = text.index("\n ],", begin)
    contents["plan.json"] = (text[:begin] + ' "outputs": [' + text[end + 2 :]).encode()
    rewrite(path, contents)
    extra = {"verify": [model], "report": ["-o", tmp_path / "r.html"]}.get(command, [])
    assert "plan.outputs: is empty" in refused(command, path, *extra)
