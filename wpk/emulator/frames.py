"""What the emulator's process and its parent tell each other: a header, then bytes.

Requests are pickled: the child believes its parent. Answers are JSON, since a kernel may have trampled on
the child, and what such a process says must not become code in its parent.
"""

import json
import pickle
import struct
from dataclasses import asdict
from typing import IO, Any, NamedTuple, cast

import numpy as np

from wpk.emulator.errors import EmulatorError
from wpk.emulator.memory import Bytes
from wpk.emulator.native import Statistics
from wpk.errors import CompileError, WpkError

_LENGTHS = struct.Struct("<QQ")
_MAX_HEADER = 1 << 20
_KINDS: dict[str, type[WpkError]] = {each.__name__: each for each in (EmulatorError, CompileError)}
_NOTHING = np.empty(0, np.uint8)


class BrokenFrameError(EOFError):
    """The other side has ended, or says what it never should."""


class Answer(NamedTuple):
    """What the child answers: a number, what a launch did, bytes, or an error.

    Attributes:
        number: An address; 0 where none was asked for.
        statistics: Of a launch.
        error: Why it failed.
        data: Bytes that were asked for.
    """

    number: int = 0
    statistics: Statistics | None = None
    error: WpkError | None = None
    data: Bytes = _NOTHING


def send_request(
    pipe: IO[bytes], method: str, arguments: tuple[object, ...], data: Bytes | None = None
) -> None:
    """Ask for a method; ``data`` follows its arguments and is not copied."""
    _send(pipe, pickle.dumps((method, arguments), protocol=5), _NOTHING if data is None else data)


def receive_request(pipe: IO[bytes]) -> tuple[str, tuple[Any, ...], Bytes]:
    """The next request of the parent.

    Raises:
        BrokenFrameError: It has ended.
    """
    length, size = _LENGTHS.unpack(_exactly(pipe, _LENGTHS.size))
    method, arguments = pickle.loads(_exactly(pipe, length))
    return method, arguments, _read(pipe, size)


def send_answer(pipe: IO[bytes], answer: Answer) -> None:
    """Answer the last request."""
    error = answer.error
    header = {
        "number": answer.number,
        "statistics": None if answer.statistics is None else asdict(answer.statistics),
        "error": None if error is None else [type(error).__name__, error.what, error.fix],
    }
    _send(pipe, json.dumps(header).encode(), answer.data)


def receive_answer(pipe: IO[bytes], expected: int) -> Answer:
    """The answer to the last request.

    Args:
        pipe: The child's.
        expected: Bytes of data that were asked for; no other number is taken.

    Raises:
        BrokenFrameError: The child has ended, or answers what no child does.
    """
    length, size = _LENGTHS.unpack(_exactly(pipe, _LENGTHS.size))
    if length > _MAX_HEADER or size not in (0, expected):
        raise BrokenFrameError
    try:
        return _answer(json.loads(_exactly(pipe, length)), _read(pipe, size))
    except (ValueError, LookupError, TypeError, AttributeError) as broken:
        raise BrokenFrameError from broken


def _answer(header: dict[str, Any], data: Bytes) -> Answer:
    statistics, error = header["statistics"], None
    if header["error"] is not None:
        kind, what, fix = map(str, header["error"])
        error = _KINDS.get(kind, EmulatorError)(what, fix=fix)
    if statistics is not None:
        statistics = Statistics(
            int(statistics["collectives"]),
            {str(name): int(count) for name, count in statistics["phases"].items()},
            {str(name): int(count) for name, count in statistics["conflicts"].items()},
            int(statistics["uncounted"]),
        )
    return Answer(int(header["number"]), statistics, error, data)


def _send(pipe: IO[bytes], header: bytes, data: Bytes) -> None:
    flat = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    pipe.write(_LENGTHS.pack(len(header), flat.nbytes))
    pipe.write(header)
    pipe.write(flat.data)
    pipe.flush()


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise BrokenFrameError
    return data


def _read(pipe: IO[bytes], size: int) -> Bytes:
    data = np.empty(size, np.uint8)
    if size and cast("Any", pipe).readinto(data.data) < size:
        raise BrokenFrameError
    return data
