"""What a worker of the graph fuzzer does with a seed: draw, run, keep what failed."""

from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, Literal

from support.plans.warm import Warm

from fuzzing.builder import Rejected
from fuzzing.corpus import write_case
from fuzzing.graphs import Case, draw
from fuzzing.rewriting import run_rewritten
from fuzzing.running import GOOD, Check, Result, run_case
from fuzzing.worker import READY


@dataclass(frozen=True)
class GraphSettings:
    """What a worker needs to know.

    Attributes:
        finalists: Schedules of a problem that are compiled; the product compiles 8.
        check: Whether ``optimize`` checks; ``passes``: cases end with their graph passes, and no
            plan is built.
        failures: Where the cases go that ended badly.
        cubins: Whether every kernel is compiled for the GPU.
    """

    finalists: int
    check: Check | Literal["passes"]
    failures: Path
    cubins: bool = True


def serve(connection: Connection, settings: GraphSettings) -> None:
    """Answer seeds with rows, and cases with results."""
    with Warm(settings.finalists, cubins=settings.cubins) as warm:
        connection.send(READY)
        while True:
            try:
                job = connection.recv()
            except EOFError:
                return
            if isinstance(job, Case):
                connection.send(_result(job, settings, warm))
            else:
                connection.send(_row(job, settings, warm))


def _result(case: Case, settings: GraphSettings, warm: Warm) -> Result:
    if settings.check == "passes":
        return run_rewritten(case)
    return run_case(case, warm, check=settings.check)


def _row(seed: int, settings: GraphSettings, warm: Warm) -> dict[str, Any]:
    try:
        case = draw(Random(seed), f"seed {seed}")
    except Rejected as why:
        return {"outcome": "rejected", "words": str(why)[:200]}
    begun = settings.failures / f"{seed}-begun.onnxtxt"
    _keep(case, begun, "did not end")  # it stays where this process dies or hangs
    result = _result(case, settings, warm)
    begun.unlink(missing_ok=True)
    if not {result.outcome, result.unchecked or result.outcome} <= set(GOOD):
        kind = result.outcome.replace(" ", "-")
        words = f"{result.outcome}: {result.words[:300]}"
        _keep(case, settings.failures / f"{seed}-{kind}.onnxtxt", words)
    return {
        "outcome": result.outcome.value,
        "unchecked": result.unchecked and result.unchecked.value,
        "precision": case.precision,
        "words": result.words[:600],
        "where": result.where,
        "planned": result.planned,
        "inconclusive": result.inconclusive,
        "seconds": round(result.seconds, 3),
        "passes": dict(result.passes),
        "operators": sorted({node.op_type for node in case.model.graph.node}),
    }


def _keep(case: Case, path: Path, note: str) -> None:
    try:
        write_case(case, path, note)
    except ValueError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(note, encoding="utf-8")
