"""Write a plan to a file, and read it back with everything checked."""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

from wpk.codec import encode
from wpk.errors import PlanError
from wpk.plan.checks.models import check_models
from wpk.plan.checks.whole_plan import check_plan
from wpk.plan.container import (
    DIGEST,
    PLAN,
    SPEC,
    WEIGHTS,
    member_of,
    read_container,
    write_container,
)
from wpk.plan.fields import decode, wrong
from wpk.plan.plan import SCHEMA, Plan, PlanBundle
from wpk.plan.spec_of_plan import spec_of_plan
from wpk.plan.weights_file import (
    array_digests,
    read_weights,
    weight_ranges,
    weights_bytes,
    weights_header,
    write_weights,
)
from wpk.version import VERSION

Paths = str | os.PathLike[str]

_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F]")
"""An escape of a surrogate. Plans are UTF-8, which needs none; one by itself can be printed nowhere."""


def write_plan(path: Path, bundle: PlanBundle) -> None:
    """Write a plan atomically; the same bundle gives the same bytes.

    What is written has passed the checks that reading makes, so no plan is written that cannot be
    read.

    Raises:
        PlanError: The bundle contradicts itself (a bug of the writer).
        OutputError: The file cannot be written.
    """
    _check_members(bundle)
    check_plan(bundle.plan)
    check_models(bundle)
    write_parts(path, plan_text(bundle.plan), spec_of_bundle(bundle), bundle)


def bundle_of(plan: Paths | PlanBundle) -> PlanBundle:
    """A plan, given as a file or as what `read_plan` or `wpk.optimize` returned.

    Raises:
        PlanError: It is something else, or cannot be read.
    """
    if isinstance(plan, PlanBundle):
        return plan
    if not isinstance(plan, str | os.PathLike):
        raise PlanError(
            f"a plan is given as {type(plan).__name__}",
            fix="give the path of a plan file, or what wpk.optimize returned",
        )
    return read_plan(Path(plan))


def write_parts(path: Path, text: bytes, spec: bytes, bundle: PlanBundle) -> None:
    """Write a plan's text and spec, and what else a bundle holds, as they are: nothing is checked.

    Args:
        path: Of the file.
        text: What becomes ``plan.json``.
        spec: What becomes ``plan.spec``.
        bundle: Its weights, machine code and sources.

    Raises:
        OutputError: The file cannot be written.
    """
    members = {
        PLAN: member_of(text),
        SPEC: member_of(spec),
        WEIGHTS: (
            weights_bytes(bundle.weights),
            lambda stream: write_weights(stream, bundle.weights),
        ),
    }
    for digest in sorted(bundle.cubins):
        members[f"kernels/{digest}.cubin"] = member_of(bundle.cubins[digest])
        members[f"kernels/{digest}.cu"] = member_of(bundle.sources[digest].encode())
    for digest in sorted(bundle.models):
        members[f"models/{digest}.onnx"] = member_of(bundle.models[digest])
    members[DIGEST] = member_of(digest_line(text))
    write_container(path, members)


def plan_text(plan: Plan) -> bytes:
    """``plan.json``: it names every weight and kernel by digest, so it stands for the whole file."""
    text = json.dumps(encode(plan, Plan), indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode()


def spec_of_bundle(bundle: PlanBundle) -> bytes:
    """``plan.spec`` of a plan whose weights are written by `write_weights`."""
    return spec_of_plan(bundle.plan, weight_ranges(weights_header(bundle.weights)))


def digest_line(text: bytes) -> bytes:
    """What ``plan.sha256`` says of ``plan.json``, as ``sha256sum`` writes and checks it."""
    return f"{_sha256(text)}  {PLAN}\n".encode()


def read_plan(path: Path) -> PlanBundle:
    """Read a plan.

    Raises:
        PlanError: The file is damaged, hostile or from another version; the message names the
            file's member or field.
    """
    members = read_container(path)
    text = members.pop(PLAN)
    if members.pop(DIGEST) != digest_line(text):
        raise PlanError(
            f"{path}: {PLAN} does not have the digest that {DIGEST} states: one of them was changed",
            fix="copy the plan again, or write it again: wpk optimize",
        )
    plan = _decode(text)
    spec, weights = members.pop(SPEC), members.pop(WEIGHTS)
    bundle = PlanBundle(
        plan,
        read_weights(weights),
        {_stem(n): data for n, data in members.items() if n.endswith(".cubin")},
        {_stem(n): _text(n, data) for n, data in members.items() if n.endswith(".cu")},
        {_stem(n): data for n, data in members.items() if n.endswith(".onnx")},
    )
    _check_members(bundle)
    check_plan(plan)
    check_models(bundle)
    if spec != spec_of_plan(plan, weight_ranges(weights)):
        raise wrong(SPEC, f"does not say what {PLAN} says")
    return bundle


def _decode(text: bytes) -> Plan:
    if _HALF_CHARACTER.search(text):
        raise wrong(PLAN, "no JSON of a plan: a text holds half a character")
    try:
        data = json.loads(text.decode(), parse_constant=_refuse_constant, object_pairs_hook=_unique)
        _check_schema(data)
        return decode(data, Plan, "plan")
    except (ValueError, RecursionError) as error:
        raise wrong(PLAN, f"no JSON of a plan: {error}") from error


def _check_schema(data: Any) -> None:
    if not isinstance(data, dict):
        raise wrong("plan", "expected an object")
    seen = data.get("schema")
    if seen != SCHEMA:
        raise PlanError(
            f"plan field plan.schema: {str(seen)[:40]}; this wpk {VERSION} reads {SCHEMA} "
            f"(written by wpk {str(data.get('wpk'))[:40]})",
            fix="read it with the version that wrote it, or write it again: wpk optimize",
        )


def _refuse_constant(name: str) -> float:
    raise ValueError(f"bare {name}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object names a field twice")
    return found


def _check_members(bundle: PlanBundle) -> None:
    """Every weight and kernel that the plan names is there, with its digest, and nothing else."""
    plan = bundle.plan
    _same_names("weights", set(plan.weights), set(bundle.weights))
    digests = array_digests(bundle.weights)
    for name, weight in plan.weights.items():
        array, path = bundle.weights[name], f"plan.weights.{name}"
        if array.dtype != weight.dtype.numpy or array.shape != weight.shape:
            raise wrong(
                path,
                f"stored as {array.dtype}{list(array.shape)}, claimed {weight.dtype} "
                f"{list(weight.shape)}",
            )
        _same(f"{path}.digest", weight.digest, digests[name])
    _same_names("kernels", set(plan.kernels), set(bundle.cubins))
    _same_names("kernels", set(plan.kernels), set(bundle.sources))
    for digest, kernel in plan.kernels.items():
        path = f"plan.kernels.{digest[:12]}"
        _same(f"{path}.cubin_digest", kernel.cubin_digest, _sha256(bundle.cubins[digest]))
        source = bundle.sources[digest].encode()
        _same(f"{path}.source_digest", kernel.source_digest, _sha256(source))

    named = {each.model for step in plan.steps if (each := step.fallback) is not None}
    _same_names("models", named, set(bundle.models))
    for digest, data in bundle.models.items():
        _same(f"models/{digest[:12]}", digest, _sha256(data))


def _same_names(what: str, claimed: set[str], stored: set[str]) -> None:
    if claimed != stored:
        missing, extra = sorted(claimed - stored), sorted(stored - claimed)
        raise wrong(f"plan.{what}", f"not stored: {missing[:3]}; stored but not named: {extra[:3]}")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _same(path: str, claimed: str, seen: str) -> None:
    if seen != claimed:
        raise wrong(path, f"{claimed[:12]}… is claimed, the stored bytes have {seen[:12]}…")


def _stem(name: str) -> str:
    return Path(name).stem


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise wrong(name, "no UTF-8 text") from error
