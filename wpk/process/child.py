"""A child process that can be given up: what may hang, crash or trample on memory costs only that process."""

import os
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from wpk.errors import WpkError
from wpk.process.channel import Channel, RemoteCall

_LONGEST_SECONDS = 1e6
"""A longer limit is none: a socket waits for no more than 24 days."""

_EXIT_SECONDS = 5.0
"""For a child that has closed its end to exit by itself, so that its status says why."""

_STANDARD_ERROR = 2


class ChildTimeoutError(Exception):
    """The child did not answer within the time limit, and was ended."""


class ChildLostError(Exception):
    """The child has died, or answered what no child does and was ended.

    Attributes:
        status: Its exit status: minus a signal's number where one ended it; None where it had ended before it was called.
    """

    def __init__(self, status: int | None) -> None:
        """Keep the status."""
        super().__init__(f"status {status}")
        self.status = status


class ChildProcess:
    """A child process that executes `wpk.process.serve`, and answers one call after another.

    The states of a child, and what each of them costs:

        running --- call ---> answering --- answer, or an error of its own ---> running
                                 |
                                 +--- time limit, death, broken answer, interrupt ---> ended

    Nothing leads out of *ended*: the child's memory is gone, and whoever needs another starts one. A child ends with
    this object, with its parent however that ends, and never by what a fork of its parent does.
    """

    def __init__(
        self,
        module: str,
        *arguments: object,
        errors: Sequence[type[WpkError]],
        descriptors: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
        reports: int | None = None,
    ) -> None:
        """Start it: a fresh interpreter, in a session of its own, since Ctrl-C is the parent's to handle.

        Args:
            module: What it executes, by ``python -m``.
            arguments: What the function takes that `wpk.process.serve` is given, as text.
            errors: Types of the errors that it answers; one of another type becomes the first of them.
            descriptors: Files of this process that it keeps open.
            environment: Its environment variables; those of this process when not given.
            reports: Descriptor of a file for what it prints; this process's standard error when not given.
        """
        self._errors = tuple(errors)
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        printed = _STANDARD_ERROR if reports is None else reports
        words = map(str, (theirs.fileno(), os.getpid(), *arguments))
        with theirs:
            self._process = subprocess.Popen(  # -P: the user's folder is not on the import path
                [sys.executable, "-P", "-m", module, *words],
                pass_fds=[theirs.fileno(), *descriptors],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                env=environment,
                start_new_session=True,
            )
        self._end = weakref.finalize(self, _end, self._process, self._channel, os.getpid())

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it can be called."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it, whatever it is doing, from any thread; who waits for its answer sees it lost."""
        self._process.kill()

    def end(self) -> None:
        """End it, wait for it, and let go of it."""
        self._end()

    def ask(
        self,
        method: str,
        *arguments: object,
        limit_seconds: float,
        answer: Any = None,
        data: memoryview | None = None,
        size: int = 0,
    ) -> Any:
        """Have the child call a method of its service.

        Args:
            method: Its name.
            arguments: What it takes; they are pickled.
            limit_seconds: For the whole call; then the child is ended.
            answer: Type of the answer, one that `wpk.codec` knows; bytes for what a buffer holds; None
                where there is none.
            data: Bytes that are the method's last argument.
            size: Of the bytes that are asked for; no other number is taken.

        Raises:
            ChildTimeoutError: It took longer.
            ChildLostError: The child has ended.
            WpkError: The method's own error; the child goes on.
        """
        limit = min(limit_seconds, _LONGEST_SECONDS)
        request = RemoteCall(method, arguments, answer, data is not None, limit)
        found = self._call(request, memoryview(b"") if data is None else data, size)
        if isinstance(found, WpkError):
            raise found
        return found

    def _call(self, request: RemoteCall, data: memoryview, size: int) -> Any:
        """The answer to a request, which may be an error."""
        if not self.is_alive:
            raise ChildLostError(None)
        deadline = time.monotonic() + request.limit_seconds
        try:
            self._channel.ask(request, data, deadline)
            return self._channel.receive_answer(request, size, self._errors, deadline)
        except TimeoutError as error:
            self.end()
            raise ChildTimeoutError from error
        except (OSError, EOFError) as error:
            raise ChildLostError(self._status()) from error
        except BaseException:  # an interrupt: the next answer would be one to this request
            self.end()
            raise

    def _status(self) -> int:
        """How a child that has closed its end ends."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)
        self.end()
        return self._process.wait()


def _end(process: subprocess.Popen[bytes], channel: Channel, parent: int) -> None:
    """End a child that is this process's own: a fork of the parent has no say in it."""
    if os.getpid() == parent:
        process.kill()
        process.wait()
        channel.close()
