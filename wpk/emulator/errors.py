"""What goes wrong while the emulator executes a kernel."""

from wpk.errors import LaunchError


class EmulatorError(LaunchError):
    """A kernel broke a rule: illegal address, deadlock, misaligned access, divergent warp."""


class EmulatorTimeoutError(EmulatorError):
    """A kernel did not end within its time limit."""
