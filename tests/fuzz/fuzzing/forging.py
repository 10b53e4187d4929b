"""Plans whose fields were changed and whose digests were then made to fit: nothing shows it but checks."""

import hashlib
import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzzing.damage import damaged
from wpk.codec import FieldError, decode, encode
from wpk.errors import EngineError
from wpk.kernel_source import KernelSource
from wpk.plan.plan import Kernel, Plan, PlanBundle, Step
from wpk.plan.plan_file import spec_of_bundle, write_parts
from wpk.plan.weights_file import array_bytes
from wpk.schedules.registry import TEMPLATE_OF
from wpk.targets.registry import find_target


class NotForgeable(Exception):  # noqa: N818 (a draw that did not work out is no error)
    """What was drawn is no plan that kernels could be generated for."""


def forged(random: Random, bundle: PlanBundle) -> tuple[PlanBundle, str]:
    """A plan with changes in what it computes, its launches, kernels and digests made to fit.

    Raises:
        NotForgeable: The changes cannot be written as a plan.
    """
    draw = random.random()
    if draw < 0.12:
        return _smaller_weight(random, bundle)
    if draw > 0.85:
        return _other_schedule(random, bundle)
    if draw < 0.22:
        return _rearranged(random, bundle)
    data = encode(bundle.plan, Plan)
    if draw < 0.5:
        words = _targeted(random, data)
        made = data
    else:
        made, words = damaged(random, data, _roots(random, data))
    try:
        plan: Plan = decode(made, Plan, "plan")
    except (FieldError, ValueError, RecursionError) as error:
        raise NotForgeable(str(error)) from error
    return consistent(plan, bundle), words


def consistent(plan: Plan, honest: PlanBundle) -> PlanBundle:
    """The plan with launches, kernels and digests that fit its problems and schedules.

    Raises:
        NotForgeable: A template generates nothing for them.
    """
    steps, sources = [], dict[str, KernelSource]()
    for step in plan.steps:
        made, units = _generated(step)
        steps.append(made)
        sources |= units
    some = next(iter(honest.plan.kernels.values()))
    kernels, cubins = dict[str, Kernel](), dict[str, bytes]()
    for digest, source in sorted(sources.items()):
        known = plan.kernels.get(digest, some)
        cubins[digest] = honest.cubins.get(digest, honest.cubins[some.digest])
        kernels[digest] = replace(
            known,
            digest=digest,
            entry=source.entry,
            cubin_digest=hashlib.sha256(cubins[digest]).hexdigest(),
            source_digest=hashlib.sha256(source.text.encode()).hexdigest(),
        )
    made_plan = replace(plan, steps=tuple(steps), kernels=kernels)
    texts = {digest: source.text for digest, source in sources.items()}
    return PlanBundle(made_plan, honest.weights, cubins, texts)


def _generated(step: Step) -> tuple[Step, dict[str, KernelSource]]:
    if step.candidate.maker.name not in TEMPLATE_OF:
        raise NotForgeable("no template")
    template = TEMPLATE_OF[step.candidate.maker.name]
    problem = step.operator.problem
    try:
        schedule = template.schedule_from(step.candidate.configuration)
        units = template.instantiate(problem, schedule)
        launches = template.launches(problem, schedule)
    except Exception as error:  # a forger only keeps what works
        raise NotForgeable(str(error)) from error
    return replace(step, launches=launches), {unit.digest: unit for unit in units}


def _other_schedule(random: Random, bundle: PlanBundle) -> tuple[PlanBundle, str]:
    """Another legal schedule of one step, which reads its constant in the same packing."""
    plan = bundle.plan
    index = random.randrange(len(plan.steps))
    step = plan.steps[index]
    if step.candidate.maker.name not in TEMPLATE_OF:
        raise NotForgeable("no template")
    template, problem = TEMPLATE_OF[step.candidate.maker.name], step.operator.problem
    _, legal = template.space(problem, find_target(plan.target))
    packing = template.packing(problem, template.schedule_from(step.candidate.configuration))
    for _ in range(8):
        schedule = template.schedule(legal, random.randrange(len(next(iter(legal.values())))))
        if template.packing(problem, schedule) != packing:
            continue
        candidate = replace(step.candidate, configuration=schedule.parameters())
        steps = list(plan.steps)
        steps[index] = replace(step, candidate=candidate)
        return consistent(replace(plan, steps=tuple(steps)), bundle), f"{template.name} {schedule}"
    raise NotForgeable("every other schedule packs its constant otherwise")


def _roots(random: Random, data: Any) -> list[list[Any]]:
    """Where changes decide what is computed."""
    index = random.randrange(len(data["steps"]))
    step = ["steps", index]
    return [
        [*step, "operator", "problem"], [*step, "operator", "problem"], [*step, "candidate", "configuration"],
        [*step, "inputs"], ["values"], ["buffers"], ["inputs"], ["outputs"], ["free"],
    ]  # fmt: skip


def _targeted(random: Random, data: Any) -> str:
    """Strides, paddings, offsets, operands and sizes, as somebody who means harm would change them."""
    step = random.choice(data["steps"])
    found: list[tuple[Any, Any]] = []
    _collect(step["operator"]["problem"], found)
    if random.random() < 0.25:
        _collect(data["values"], found)
        _collect(data["buffers"], found)
    if not found:
        raise NotForgeable("nothing to change")
    container, key = random.choice(found)
    value = container[key]
    far = random.choice([-1, 1]) * random.choice([1, 3, 64, 4096, 2**20, 2**26, 2**31])
    if isinstance(value, list):  # strides: what one gains another loses, so that ends stay the same
        new = list(value)
        one = random.randrange(len(new))
        new[one] = new[one] - far if isinstance(new[one], int) else far
        if len(new) > 1 and random.random() < 0.6:
            other = random.choice([i for i in range(len(new)) if i != one])
            new[other] = new[other] + far if isinstance(new[other], int) else -far
        container[key] = new
    else:
        container[key] = random.choice([far, abs(far), value + far, -value, value * 2, 0])
    return f"{key}: {value} -> {container[key]}"


def _collect(data: Any, found: list[tuple[Any, Any]]) -> None:
    """Numbers and lists of numbers below."""
    entries = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in list(entries):
        if (isinstance(value, list) and value and all(type(n) is int for n in value)) or type(
            value
        ) is int:
            found.append((data, key))
        if isinstance(value, dict | list):
            _collect(value, found)


def _smaller_weight(random: Random, bundle: PlanBundle) -> tuple[PlanBundle, str]:
    """A weight that holds less than kernels read, or another type or shape; its digest is right."""
    if not bundle.weights:
        raise NotForgeable("no weights")
    name = random.choice(sorted(bundle.weights))
    array = bundle.weights[name]
    kinds: list[Callable[[], np.ndarray]] = [
        lambda: array.reshape(-1)[:1],
        lambda: array.reshape(-1)[: max(1, array.size // 2)],
        lambda: array.reshape(-1),
        lambda: array[:1],
        lambda: np.concatenate([array.reshape(-1)] * 2),
        lambda: array.reshape((1,) * 3 + array.shape),
    ]
    made = np.ascontiguousarray(random.choice(kinds)())
    digest = hashlib.sha256(array_bytes(made)).hexdigest()
    weight = replace(bundle.plan.weights[name], shape=made.shape, digest=digest)
    if random.random() < 0.2:
        weight = replace(weight, packing=random.choice([None, "x", "conv_krs"]))
    plan = replace(bundle.plan, weights={**bundle.plan.weights, name: weight})
    return replace(
        bundle, plan=plan, weights={**bundle.weights, name: made}
    ), f"weight {made.shape}"


def _rearranged(random: Random, bundle: PlanBundle) -> tuple[PlanBundle, str]:
    """Steps dropped, exchanged, repeated; inputs of a step exchanged; outputs taken away."""
    plan = bundle.plan
    steps = list(plan.steps)
    index = random.randrange(len(steps))
    kind = random.randrange(6)
    if kind == 0:
        del steps[index]
    elif kind == 1:
        steps.reverse()
    elif kind == 2:
        steps.insert(index, steps[random.randrange(len(steps))])
    elif kind == 3:
        step = steps[index]
        names = [*plan.values, *plan.weights]
        inputs = tuple(random.choice(names) for _ in step.inputs)
        steps[index] = replace(step, inputs=inputs)
    elif kind == 4:
        plan = replace(plan, outputs=plan.outputs[1:])
    else:
        names = list(plan.values)
        output = (random.choice(names),)
        steps[index] = replace(
            steps[index], operator=replace(steps[index].operator, outputs=output)
        )
    return consistent(replace(plan, steps=tuple(steps)), bundle), f"rearranged in way {kind}"


def write_unchecked(path: Path, bundle: PlanBundle, text: bytes | None = None) -> None:
    """Write a plan without any of the checks that wpk makes.

    Args:
        path: The file.
        bundle: What it holds.
        text: In place of the bundle's ``plan.json``.
    """
    if text is None:
        said = json.dumps(encode(bundle.plan, Plan), indent=1, ensure_ascii=False)
        text = said.encode(errors="surrogatepass")
    write_parts(path, text, _spec(bundle), bundle)


def _spec(bundle: PlanBundle) -> bytes:
    """What `plan.spec` says of a plan; nothing where the plan is too wrong to say it."""
    try:
        return spec_of_bundle(bundle)
    except (EngineError, KeyError, IndexError, struct.error, UnicodeError, TypeError, ValueError):
        return b""
