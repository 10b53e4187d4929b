"""Child processes that can be given up, and how they are talked to. Tensors go through `wpk.process.shared`."""

from wpk.process.child import ChildLostError, ChildProcess, ChildTimeoutError
from wpk.process.device import ChildDevice
from wpk.process.service import serve
from wpk.process.shared import Segment, SharedMemory, SharedSegments
