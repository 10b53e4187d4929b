"""The child's side of `wpk.runtime.process`: ``python -m wpk.runtime.serve`` executes what it is asked."""

import resource
from typing import Any

import numpy as np

from wpk.dtypes import from_numpy
from wpk.errors import EngineError, LaunchError
from wpk.graph_passes import open_session, run_session
from wpk.process import Segment, SharedSegments, serve
from wpk.runtime.forms import Array, ArrayForm, RefusedInputsError, form_of, placed

_NUMPY: dict[str, np.dtype[Any]] = {
    "tensor(float)": np.dtype(np.float32),
    "tensor(double)": np.dtype(np.float64),
    "tensor(float16)": np.dtype(np.float16),
}
"""Floating point types of ONNX Runtime's inputs, in which what is given is converted."""

_LONGEST = 300


class Service:
    """Sessions of ONNX Runtime, by the digests of their models."""

    def __init__(self, memory: str, most_bytes: str) -> None:
        """Begin with none.

        Args:
            memory: Descriptor of the `SharedMemory` that arrays come and go in.
            most_bytes: What the process may allocate; 0 where that is not known.
        """
        if int(most_bytes):
            resource.setrlimit(resource.RLIMIT_DATA, (int(most_bytes), int(most_bytes)))
        self._shared = SharedSegments(int(memory), lambda segment: None)
        self._sessions: dict[str, Any] = {}
        self._results: list[Array] = []

    def load(self, digest: str, model: bytearray) -> None:
        """Open a session.

        Raises:
            EngineError: ONNX Runtime does not take the model.
        """
        try:
            self._sessions[digest] = open_session(bytes(model))
        except Exception as error:  # onnxruntime's exceptions share no base class
            raise EngineError(
                f"ONNX Runtime does not take a part of the plan, which it is to execute: {_words(error)}",
                fix="install the version of onnxruntime that the plan names, or write it again",
            ) from error

    def run(
        self, digest: str, forms: tuple[ArrayForm, ...], segment: Segment, size: int
    ) -> tuple[ArrayForm, ...]:
        """Execute a model on arrays in a segment; `take` gives the results.

        Raises:
            RefusedInputsError: ONNX Runtime cannot execute it on these.
            LaunchError: It gives what no engine holds.
        """
        session = self._sessions[digest]
        feed: dict[str, Array] = {}
        arrays = placed(forms, self._shared.array(segment, size))
        for port, array in zip(session.get_inputs(), arrays, strict=True):
            wanted = _NUMPY.get(port.type)
            feed[port.name] = array if wanted is None else array.astype(wanted, copy=False)
        try:
            found = run_session(session, feed)
        except Exception as error:  # as above
            raise RefusedInputsError(
                f"ONNX Runtime cannot execute its part of the plan on these inputs: {_words(error)}",
                fix="give inputs that the model is made for",
            ) from error
        self._results = [np.ascontiguousarray(each).reshape(np.shape(each)) for each in found]
        answers = [form_of(each) for each in self._results]
        if None in answers:
            strange = [each.dtype for each in self._results if from_numpy(each.dtype) is None]
            raise LaunchError(
                f"ONNX Runtime gave an array of {strange[0]}, which no engine holds",
                fix="report this as a bug, with the model",
            )
        return tuple(each for each in answers if each is not None)

    def take(self, segment: Segment, size: int) -> None:
        """Copy the results of the last run into a segment."""
        forms = [ArrayForm(d, a.shape) for a in self._results if (d := from_numpy(a.dtype))]
        targets = placed(forms, self._shared.array(segment, size))
        for target, array in zip(targets, self._results, strict=True):
            np.copyto(target, array)
        self._results = []


def _words(error: Exception) -> str:
    line = next(iter(str(error).splitlines()), "") or type(error).__name__
    return line.removeprefix("[ONNXRuntimeError] : ")[:_LONGEST]


if __name__ == "__main__":
    serve(Service)
