"""The process that executes candidates, those of libraries too: ``python -m wpk.libraries.child CALLS MEMORY ORDINAL``.

It answers the calls of `wpk.libraries.process.TrialProcess`.
"""

import sys
from multiprocessing.connection import Connection

from wpk.device.child import serve
from wpk.libraries.gpu import GuardedGpuDevice

if __name__ == "__main__":
    calls, memory, ordinal = map(int, sys.argv[1:])
    serve(Connection(calls), memory, ordinal, GuardedGpuDevice)
