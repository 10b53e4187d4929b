"""The child's side of `wpk.process.child.ChildProcess`: calls are answered by the methods of a service."""

import os
import resource
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable

from wpk.errors import WpkError
from wpk.process.channel import Channel

_ORPHAN_POLL_SECONDS = 0.5
_ORPHAN_GRACE_SECONDS = 10


def serve(open_service: Callable[..., object]) -> None:
    """Answer calls until the parent closes its end, or is gone; a `WpkError` is an answer.

    A thread looks for the parent, also while a kernel hangs. Where the interpreter hangs with it, an alarm ends the
    process some time after the parent should have done so.

    Args:
        open_service: Makes what has the methods, with the first call, of the arguments that the child was started with.
    """
    descriptor, parent, *arguments = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash leaves no image of memory
    threading.Thread(target=_watch_parent, args=(int(parent),), daemon=True).start()
    channel = Channel(socket.socket(fileno=int(descriptor)))
    service: object = None
    while True:
        try:
            request, data = channel.receive_request()
        except (EOFError, OSError):  # the parent is gone, perhaps before it was read
            return
        limit = int(request.limit_seconds) + _ORPHAN_GRACE_SECONDS
        signal.alarm(limit)
        result: object
        try:
            if service is None:
                service = open_service(*arguments)
            last = (data,) if request.has_data else ()
            result = getattr(service, request.method)(*request.arguments, *last)
        except WpkError as error:
            result = error
        except (MemoryError, OSError) as error:
            what = f"{request.method} failed: {str(error) or type(error).__name__}"
            result = WpkError(what, fix="free memory on this machine")
        signal.alarm(0)
        try:
            channel.answer(request, result)
        except OSError:
            return


def _watch_parent(parent: int) -> None:
    """End with the parent, even when a kernel hangs and the parent was killed."""
    while os.getppid() == parent:
        time.sleep(_ORPHAN_POLL_SECONDS)
    os._exit(1)
