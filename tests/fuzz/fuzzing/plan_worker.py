"""What a worker of the plan fuzzer does with a seed: damage a file, use it in every way, watch."""

import contextlib
import io
import json
import os
import re
import resource
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import wpk
from fuzzing.containers import damaged_file
from fuzzing.damage import damaged
from fuzzing.forging import NotForgeable, forged, write_unchecked
from fuzzing.plan_bases import PRECISIONS, Base, bases
from fuzzing.worker import READY
from wpk.assembly.lock import write_lock
from wpk.cli.main import _failed
from wpk.cli.main import main as command
from wpk.codec import encode
from wpk.emulator import SANITIZED, EmulatorProcess
from wpk.engine import Engine
from wpk.errors import LaunchError, VerificationError, WpkError
from wpk.pipeline import preview, rebuild
from wpk.plan.plan import Plan
from wpk.plan.plan_file import read_plan
from wpk.targets.registry import find_target
from wpk.targets.target_file import load_target

MEMORY_BYTES = 24 * 2**30
_RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""What a terminal obeys or hides behind."""

KINDS = {"forged": 50, "fields": 22, "container": 12, "lock": 8, "target": 8, "sanitized": 0}
"""Weights. The last, only on request: forged plans that run under AddressSanitizer and UBSan."""


@dataclass(frozen=True)
class PlanSettings:
    """What a worker needs to know.

    Attributes:
        failures: Where the files go that ended badly.
        kinds: What to draw; all by default.
        precisions: Of the honest plans.
    """

    failures: Path
    precisions: tuple[str, ...] = PRECISIONS
    kinds: tuple[str, ...] = tuple(name for name, weight in KINDS.items() if weight)


def serve(connection: Connection, settings: PlanSettings) -> None:
    """Answer seeds with rows."""
    if "sanitized" not in settings.kinds:  # whose shadow memory is address space without end
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    with tempfile.TemporaryDirectory(prefix="wpk-fuzz-bases-") as folder:
        honest = bases(Path(folder), settings.precisions)
        connection.send(READY)
        while True:
            try:
                seed = connection.recv()
            except EOFError:
                return
            connection.send(run_seed(seed, honest, settings))


def run_seed(seed: int, honest: list[Base], settings: PlanSettings) -> dict[str, Any]:
    """Draw and use one damaged file; a row."""
    random = Random(seed)
    kind = random.choices(settings.kinds, [max(1, KINDS[each]) for each in settings.kinds])[0]
    base, begun = random.choice(honest), time.monotonic()
    settings.failures.mkdir(parents=True, exist_ok=True)
    kept = settings.failures / f"{seed}-{kind}.{'json' if kind in ('lock', 'target') else 'plan'}"
    row: dict[str, Any] = {"kind": kind, "base": base.name, "damage": ""}
    try:
        damage, use = _draw(random, kind, base, kept)
        row |= {"damage": damage[:300], **_watched(use)}
    except NotForgeable:
        row["outcome"] = "rejected"
    if row["outcome"] in GOOD:
        kept.unlink(missing_ok=True)
    return {**row, "seconds": round(time.monotonic() - begun, 3)}


GOOD = ("refused", "same", "different", "rejected")

Use = Callable[[], str]


def _draw(random: Random, kind: str, base: Base, path: Path) -> tuple[str, Use]:
    """Write the damaged file; what was done to it, and what to do with it."""
    if kind == "container":
        data, words = damaged_file(random, base.plan)
        path.write_bytes(data)
    elif kind == "fields":
        made, words = damaged(random, encode(base.bundle.plan, Plan))
        text = json.dumps(made).encode(errors="surrogatepass")
        write_unchecked(path, base.bundle, text)
    elif kind in ("forged", "sanitized"):
        bundle, words = forged(random, base.bundle)
        write_unchecked(path, bundle)
    elif kind == "lock":
        return _damaged_lock(random, base, path)
    else:
        return _damaged_target(random, base, path)
    if kind == "sanitized":
        return words, lambda: run_sanitized(path, base)
    verify = random.random() < 0.15
    return words, lambda: use_plan(path, base, verify=verify)


def _watched(use: Use) -> dict[str, Any]:
    """The outcome of using a file."""
    try:
        return {"outcome": use(), "words": ""}
    except LaunchError as error:
        return {"outcome": "stopped", "words": error.what[:300]}
    except WpkError as error:
        outcome = "raw text" if _RAW.search(_printed(error)) else "refused"
        return {"outcome": outcome, "words": f"{type(error).__name__}: {error.what}"[:300]}
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        words = f"{type(error).__name__}: {error}"[:300]
        return {"outcome": "traceback", "words": words, "where": where}


def _printed(error: WpkError) -> str:
    """What the command line prints of an error."""
    out = io.StringIO()
    with contextlib.redirect_stderr(out):
        _failed(error, verbose=0)
    return out.getvalue()


def use_plan(path: Path, base: Base, *, verify: bool) -> str:
    """Load, inspect and run a plan; verify it, too. What came of it.

    Raises:
        WpkError: It is refused.
        Exception: A bug.
    """
    with wpk.load(path, "cpu") as engine:
        said = _commanded("inspect", str(path))
        if _RAW.search(said):
            return "raw text"
        outputs = engine.run(base.inputs)
    same = _equal(outputs, base.outputs)
    if verify:
        try:
            _commanded("verify", str(path), str(base.model), "--device", "cpu", "--seeds", "1")
        except VerificationError:
            return "refused"
        if not same:
            return "verified though different"
    return "same" if same else "different"


def run_sanitized(path: Path, base: Base) -> str:
    """Load a plan, and run it under AddressSanitizer and UndefinedBehaviorSanitizer."""
    bundle = read_plan(path)
    with EmulatorProcess(SANITIZED) as device, Engine(bundle, device) as engine:
        outputs = engine.run(base.inputs)
    return "same" if _equal(outputs, base.outputs) else "different"


def _equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return set(one) == set(other) and all(
        np.array_equal(one[name], other[name], equal_nan=one[name].dtype.kind == "f")
        for name in one
    )


def _commanded(*arguments: str) -> str:
    """What a command prints.

    Raises:
        WpkError: It refuses.
    """
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command(arguments)
    if code == 3:
        raise VerificationError(err.getvalue(), fix="")
    if code:
        raise WpkError(err.getvalue(), fix="")
    return out.getvalue()


def _damaged_lock(random: Random, base: Base, path: Path) -> tuple[str, Use]:
    write_lock(path, base.bundle)
    made, words = damaged(random, json.loads(path.read_text(encoding="utf-8")))
    path.write_text(json.dumps(made), encoding="utf-8", errors="surrogatepass")

    def use() -> str:
        plan = path.with_suffix(".rebuilt")
        try:
            rebuild(base.model, plan, path, check=False)
            return "same" if plan.read_bytes() == base.plan.read_bytes() else "different"
        finally:
            plan.unlink(missing_ok=True)

    return words, use


def _damaged_target(random: Random, base: Base, path: Path) -> tuple[str, Use]:
    target = find_target("h200")
    data = {
        name: value
        for name, value in vars(target).items()
        if isinstance(value, int | float | str) and name != "sources"
    }
    if random.random() < 0.5:
        data = {"base": "h200", **dict(random.sample(sorted(data.items()), 3))}
    made, words = damaged(random, data)
    path.write_text(json.dumps(made), encoding="utf-8", errors="surrogatepass")

    def use() -> str:
        same = load_target(path) == target
        preview(base.model, target=str(path), search="static")
        return "same" if same else "different"

    return words, use


os.environ.setdefault("OMP_NUM_THREADS", "1")
