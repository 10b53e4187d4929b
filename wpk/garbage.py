"""When Python looks for garbage: between pieces of work that make many objects, not again and again within them."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collected_behind() -> Iterator[None]:
    """Look for garbage behind a piece of work, which makes many objects and keeps most of them to its end.

    Graphs refer to their nodes and back, so that only the collector frees them; it looks at all young objects each
    time some hundreds more are made. Where several threads are in such work, it is not waited for the last one.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
