"""The devices that people open: the CPU and a GPU, here or in a process, with libraries to call.

A device is put together of parts: what executes kernels (`wpk.emulator`, `wpk.device`), the libraries that it calls
(`wpk.libraries`), and guards around its memory. Opening one imports what it needs; importing this does not.
"""

from wpk.backends.gpu_process import GpuProcess
from wpk.backends.opening import open_cpu, open_device, open_gpu
from wpk.backends.presence import read_gpu
