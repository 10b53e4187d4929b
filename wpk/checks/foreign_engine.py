"""Check an engine that wpk does not execute itself, e.g. one of TensorRT's, against ONNX Runtime on the untouched model."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from wpk.assembly import input_ports
from wpk.checks.float64_nodes import Array
from wpk.checks.pass_proof import Interface, PassProof
from wpk.checks.scope import rounds
from wpk.checks.testimony import Witness
from wpk.checks.witness import require_onnxruntime
from wpk.errors import VerificationError
from wpk.plan import Check
from wpk.progress import Progress

Arrays = Mapping[str, Array]


def check_foreign_engine(
    run: Callable[[Arrays], Arrays], proof: PassProof, sizes: Iterable[int], progress: Progress
) -> tuple[Check, ...]:
    """Execute an engine on the samples of a proof's scope, and compare all outputs with ONNX Runtime's.

    Args:
        run: The engine, for inputs of any of the sizes.
        proof: The proof of the passes that its graph went through.
        sizes: Of the free dimension that the engine serves; none where nothing is free.
        progress: Told of every sample.

    Raises:
        EngineError: ONNX Runtime is missing.
    """
    require_onnxruntime()
    lowered = proof.lowered
    names = lowered.program.free
    dims = [dict.fromkeys(names, size) for size in dict.fromkeys(sizes)]
    free = dims[0] if dims else {}
    ports = Interface(input_ports(lowered.program), free, lowered.source.precision)
    found: list[Check] = []
    with ThreadPoolExecutor(1, "wpk-reference") as beside:
        witness = Witness(beside, lowered.source.path, lowered.original)
        for each in rounds(ports, proof.scope, dims):
            testimony = witness.asked(ports, each)
            found += testimony.checks(run, progress, tolerance=proof.scope.tolerance)
    return tuple(found)


def require_right(checks: Iterable[Check], who: str) -> None:
    """Raise if a check failed.

    Raises:
        VerificationError: With the first failure.
    """
    failed = next((check for check in checks if check.failed), None)
    if failed is not None:
        raise VerificationError(
            f"{who} does not compute what the model does: {failed.name}: {failed.detail}",
            fix="build a plan of wpk's own (--engine wpk), and report this with the model",
        )
