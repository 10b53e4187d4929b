"""The process that executes candidates, those of libraries too: ``python -m wpk.libraries.child``.

It answers the calls of `wpk.libraries.process.TrialProcess`.
"""

import sys
from multiprocessing.connection import Connection

from wpk.device.child import serve
from wpk.libraries.gpu import GuardedGpuDevice

if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])), int(sys.argv[2]), GuardedGpuDevice)
