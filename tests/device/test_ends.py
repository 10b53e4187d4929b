"""How a process ends that still holds graphs and marks: they are waited for before they are destroyed."""

import subprocess
import sys

SCRIPT = """
import weakref
from contextlib import nullcontext
from types import SimpleNamespace

import wpk.device.graph
from wpk.device.cuda import _leave
from wpk.device import CudaGraph
from wpk.device.graph import CudaMark


class Driver:
    CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=0)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL=0)
    CUstream = int

    def __getattr__(self, name):
        def call(*arguments):
            print(name)
            return 0, 7
        return call


wpk.device.graph.bindings = Driver


class Device:
    pass


class Open(nullcontext):
    def close(self):
        print("left")


device, children = Device(), weakref.WeakSet()
weakref.finalize(device, _leave, Open(), children, [])
mark, graph = CudaMark(), CudaGraph(1, lambda: None)
children.update((mark, graph))
print("end")
"""


def test_the_device_gives_up_what_it_waited_for() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=60
    )
    *_, ending = done.stdout.split("end\n")
    waited, *destroyed, left = ending.split()
    assert (waited, left) == ("cuEventSynchronize", "left")
    assert sorted(destroyed) == ["cuEventDestroy", "cuGraphExecDestroy"]
