"""What TensorRT reports while it builds, as errors in words."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from wpk.errors import WpkError

KEPT = 100
"""Errors that a recorder keeps; a broken network of many layers may report one for each."""

_LOG = logging.getLogger("wpk.tensorrt")


class TensorRTError(WpkError):
    """TensorRT is missing, refuses a network, or fails to build."""


def build_failed(what: str, reported: list[str]) -> TensorRTError:
    """The error for a step of the build that gave nothing.

    Args:
        what: Which step, in words.
        reported: What TensorRT reported meanwhile, each with its code.
    """
    lines = reported or ["TensorRT reported nothing"]
    return TensorRTError(
        f"{what}:\n    " + "\n    ".join(lines),
        fix="build a plan of wpk's own (--engine wpk), or look the message up in TensorRT's documentation",
    )


@cache
def shared_logger(module: Any) -> Any:
    """The one logger of a binding: TensorRT keeps the first that it is given, for the whole process.

    Messages go to Python's logger ``wpk.tensorrt``. What makes a build fail is recorded besides
    (`new_recorder`), and TensorRT logs errors that it recovers from, such as a missing driver.
    """
    severity = module.ILogger.Severity
    levels = {severity.INFO: logging.DEBUG, severity.VERBOSE: logging.DEBUG}

    class Logger(module.ILogger):  # type: ignore[misc]  # a base that is known at run time only
        """Hands messages on."""

        def __init__(self) -> None:
            module.ILogger.__init__(self)
            self.listening: list[list[str]] = []

        def log(self, severity: Any, message: str) -> None:
            for lines in self.listening:
                lines.append(message)
            _LOG.log(levels.get(severity, logging.INFO), "%s", message)

    return Logger()


@contextmanager
def heard(module: Any) -> Iterator[list[str]]:
    """Collect all that TensorRT says meanwhile, down to what is for developers."""
    listening, lines = shared_logger(module).listening, list[str]()
    listening.append(lines)
    try:
        yield lines
    finally:
        listening[:] = [each for each in listening if each is not lines]


def new_recorder(module: Any) -> Any:
    """An error recorder (IErrorRecorder), safe in threads; ``reported()`` lists what it was told.

    It must live longer than what it is given to.
    """

    class Recorder(module.IErrorRecorder):  # type: ignore[misc]  # see Logger
        """Keeps codes and texts in the order in which they came."""

        def __init__(self) -> None:
            module.IErrorRecorder.__init__(self)
            self._lock = threading.Lock()
            self._errors: list[tuple[Any, str]] = []
            self._overflowed = False

        def num_errors(self) -> int:
            return len(self._errors)

        def get_error_code(self, index: int) -> Any:
            return self._errors[index][0]

        def get_error_desc(self, index: int) -> str:
            return self._errors[index][1]

        def has_overflowed(self) -> bool:
            return self._overflowed

        def clear(self) -> None:
            with self._lock:
                self._errors.clear()
                self._overflowed = False

        def report_error(self, code: Any, text: str) -> bool:
            with self._lock:
                self._overflowed = len(self._errors) >= KEPT
                if not self._overflowed:
                    self._errors.append((code, text))
            return False  # TensorRT itself knows whether it can go on

        def reported(self) -> list[str]:
            with self._lock:
                return [f"{_name(code)}: {text.strip()}" for code, text in self._errors]

    return Recorder()


def _name(code: Any) -> str:
    return str(getattr(code, "name", code))
