"""What a child process and its parent tell each other: frames of a header and bytes, on a pair of sockets.

Requests are pickled: a child believes its parent. Answers are JSON, since a kernel may have trampled on
the child, and what such a process says must not become code in its parent.
"""

import json
import pickle
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wpk.codec import decode, encode
from wpk.errors import WpkError

_LENGTHS = struct.Struct("<QQ")
_MOST_HEADER_BYTES = 1 << 24
"""Of an answer: more than the machine code of any kernel takes in JSON."""


class BrokenFrameError(EOFError):
    """The other side has ended, or says what it never should."""


@dataclass(frozen=True)
class RemoteCall:
    """A call of one of a service's methods.

    Attributes:
        method: Its name.
        arguments: What it takes; the bytes that come along are one more, if there are any.
        answer: Type of the answer, one that `wpk.codec` knows; bytes for what a buffer holds; None where there is none.
        has_data: Whether bytes come along.
        limit_seconds: After this long the parent ends the child.
    """

    method: str
    arguments: tuple[object, ...]
    answer: Any
    has_data: bool
    limit_seconds: float


class Channel:
    """One end of the pair: whole frames in, whole frames out."""

    def __init__(self, end: socket.socket) -> None:
        """Take an end."""
        self._end = end

    def close(self) -> None:
        """Close it."""
        self._end.close()

    def ask(self, request: RemoteCall, data: memoryview, deadline: float) -> None:
        """Send a request; its bytes are not copied.

        Raises:
            TimeoutError: The child has not taken all of it at the deadline, by the monotonic clock.
            OSError: The child has ended.
        """
        self._end.settimeout(_remaining(deadline))
        self._send(pickle.dumps(request, protocol=5), data)

    def receive_request(self) -> tuple[RemoteCall, bytearray]:
        """Wait for the parent's next request.

        Raises:
            EOFError: The parent has ended.
            OSError: It has.
        """
        length, size = _LENGTHS.unpack(self._receive(_LENGTHS.size))
        request: RemoteCall = pickle.loads(self._receive(length))
        return request, self._receive(size)

    def answer(self, request: RemoteCall, result: Any) -> None:
        """Answer a request; ``result`` is what it asks for, or an error.

        Raises:
            OSError: The parent has ended.
        """
        header: dict[str, Any]
        if isinstance(result, WpkError):
            header = {"error": [type(result).__name__, result.what, result.fix]}
        elif request.answer in (None, bytes):
            header = {"value": None}
        else:
            header = {"value": encode(result, request.answer)}
        has_data = request.answer is bytes and "value" in header
        self._send(json.dumps(header).encode(), memoryview(result if has_data else b""))

    def receive_answer(
        self, request: RemoteCall, size: int, errors: Sequence[type[WpkError]], deadline: float
    ) -> Any:
        """Wait for the answer to a request; an error is returned, too.

        Args:
            request: The last one.
            size: Bytes that it asks for; no other number is taken.
            errors: Types that an error can have; one of another type becomes the first of them.
            deadline: By the monotonic clock.

        Raises:
            TimeoutError: There is no answer at the deadline.
            BrokenFrameError: The child has ended, or answers what no child does.
            OSError: The child has ended.
        """
        length, found = _LENGTHS.unpack(self._receive(_LENGTHS.size, deadline))
        if length > _MOST_HEADER_BYTES or found not in (0, size):
            raise BrokenFrameError
        text, data = self._receive(length, deadline), self._receive(found, deadline)
        try:
            header = json.loads(text)
            if "error" in header:
                kind, what, fix = map(str, header["error"])
                kinds = {each.__name__: each for each in errors}
                return kinds.get(kind, errors[0])(what, fix=fix)
            if request.answer is bytes and found == size:
                return data
            return request.answer and decode(header["value"], request.answer, request.method)
        except (ValueError, LookupError, TypeError, RecursionError) as broken:
            raise BrokenFrameError from broken

    def _send(self, header: bytes, data: memoryview) -> None:
        self._end.sendall(_LENGTHS.pack(len(header), data.nbytes) + header)
        if data.nbytes:
            self._end.sendall(data)

    def _receive(self, size: int, deadline: float | None = None) -> bytearray:
        data = bytearray(size)
        rest = memoryview(data)
        while rest:
            if deadline is not None:
                self._end.settimeout(_remaining(deadline))
            count = self._end.recv_into(rest)
            if not count:
                raise BrokenFrameError
            rest = rest[count:]
        return data


def _remaining(deadline: float) -> float:
    """Seconds until then."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds
