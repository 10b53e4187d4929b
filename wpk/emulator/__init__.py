"""Execution on the CPU: the launch protocol without a GPU, and the checks that only a CPU can make."""

from wpk.emulator.child import EmulatorProcess
from wpk.emulator.emulator import Emulator
from wpk.emulator.errors import EmulatorError, EmulatorTimeoutError
from wpk.emulator.mode import CHECKING, FAST, GUARDED, SANITIZED, Mode
