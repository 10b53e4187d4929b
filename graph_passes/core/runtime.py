"""ONNX Runtime on models as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wpk.errors import GraphError

if TYPE_CHECKING:
    import onnxruntime


def open_session(model: str | bytes, threads: int = 0) -> onnxruntime.InferenceSession:
    """Open a session that executes a model's own nodes on the CPU.

    ONNX Runtime's rewriting is left out, since it is no more to be believed than ours; what goes wrong is
    said once, by the error that is raised.

    Args:
        model: The path of a model's file, or the model itself, serialized.
        threads: Cores that one node may take; 0 leaves them to ONNX Runtime.

    Raises:
        GraphError: ONNX Runtime is not installed.
    """
    try:
        import onnxruntime  # only here: who checks nothing needs none
    except ImportError as error:
        raise GraphError(
            f"executing nodes needs onnxruntime, which cannot be imported: {error}",
            fix="pip install onnxruntime",
        ) from error
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    # Weights in a file of their own are used where they lie, not copied into another order.
    options.add_session_config_entry("session.disable_prepacking", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
