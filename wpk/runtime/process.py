"""ONNX Runtime behind a process: a model that hangs, crashes or takes all memory costs only that process.

`RuntimeProcess` executes models whole, on arrays in this machine's memory. Its child is ``python -m
wpk.runtime.serve``; arrays go through shared memory. What the child answers is data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np

from wpk.errors import EngineError, LaunchError
from wpk.free_memory import free_bytes
from wpk.process import ChildLostError, ChildProcess, ChildTimeoutError, SharedMemory
from wpk.runtime.forms import Array, ArrayForm, RefusedInputsError, form_of, placed, total_bytes

LOAD_SECONDS = 120.0
"""For the interpreter and ONNX Runtime to start, and to load a model, on a loaded machine."""

RUN_SECONDS = 120.0
"""For one execution; what takes longer does not end, or belongs on a GPU."""

_MOST_BYTES = 2**40
"""Of all results of one execution; no machine holds more."""


class RuntimeProcess:
    """Executes models by ONNX Runtime in a child, which starts with the first of them.

    A child that was lost is started again with the next execution.
    """

    def __init__(self, models: Mapping[str, bytes], *, limit_seconds: float = RUN_SECONDS) -> None:
        """Remember what there is to execute.

        Args:
            models: Closed models by digest.
            limit_seconds: For one execution.
        """
        self._models, self._limit = models, limit_seconds
        self._loaded: set[str] = set()
        self._child: ChildProcess | None = None
        self._shared: SharedMemory | None = None

    def run(self, digest: str, inputs: Sequence[Array], patience: float = 1.0) -> list[Array]:
        """Execute a model.

        Args:
            digest: Of the model.
            inputs: One array for each of its inputs, in order; 16-bit floats are converted to what
                the model takes.
            patience: How many times longer it may take than the limit.

        Returns:
            Its outputs, in order, in memory that is used again when they are gone.

        Raises:
            EngineError: ONNX Runtime does not take the model.
            RefusedInputsError: It does not execute the model on these.
            LaunchError: It fails, takes too long, or gives what it never should.
        """
        forms = [_described(array) for array in inputs]
        with self._supervised("execution"):
            child, shared = self._started()
            if digest not in self._loaded:
                model = memoryview(self._models[digest])
                child.ask("load", digest, data=model, limit_seconds=LOAD_SECONDS)
                self._loaded.add(digest)
            given = shared.lend(max(1, total_bytes(forms)))
            for target, array in zip(placed(forms, given.array), inputs, strict=True):
                np.copyto(target, array)
            told: tuple[ArrayForm, ...] = child.ask(
                "run",
                digest,
                tuple(forms),
                given.segment,
                given.array.size,
                answer=tuple[ArrayForm, ...],
                limit_seconds=self._limit * max(1.0, patience),
            )
            size = total_bytes(told)
            if size > _MOST_BYTES or any(extent < 0 for form in told for extent in form.shape):
                self.close()
                raise LaunchError(
                    f"ONNX Runtime's process answers {size} bytes of results",
                    fix="report this as a bug, with the model",
                )
            taken = shared.lend(max(1, size))
            child.ask("take", taken.segment, taken.array.size, limit_seconds=self._limit)
            return list(placed(told, taken.array))

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            self._child.end()
            self._child = None
        if self._shared is not None:
            self._shared.close()
            self._shared = None

    def _started(self) -> tuple[ChildProcess, SharedMemory]:
        if self._child is not None and self._shared is not None and self._child.is_alive:
            return self._child, self._shared
        self.close()
        self._shared = SharedMemory()
        memory = self._shared.descriptor
        self._child = ChildProcess(
            "wpk.runtime.serve",
            memory,
            free_bytes() or 0,
            errors=(LaunchError, EngineError, RefusedInputsError),
            descriptors=[memory],
        )
        self._loaded.clear()
        return self._child, self._shared

    @contextmanager
    def _supervised(self, what: str) -> Iterator[None]:
        """Say in words how the child ended."""
        try:
            yield
        except ChildTimeoutError as error:
            self.close()
            raise LaunchError(
                f"ONNX Runtime's {what} did not end within {self._limit:g} s",
                fix="a smaller batch, or a model whose nodes have kernels: --fallback off names them",
            ) from error
        except ChildLostError as error:
            self.close()
            raise LaunchError(
                f"ONNX Runtime's process died in the {what} (status {error.status})",
                fix="report this as a bug of onnxruntime, with the model",
            ) from error


def _described(array: Array) -> ArrayForm:
    form = form_of(array)
    if form is None:
        raise EngineError(f"an array of {array.dtype} is given", fix="report this as a bug")
    return form
