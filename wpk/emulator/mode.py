"""How a kernel is executed: fast, or with the checks that a CPU can make."""

from dataclasses import dataclass

_LATE_COPIES, _RANDOM_ORDER, _POISON, _COUNT_BANKS = 1, 2, 4, 8  # enum Mode in runtime/state.h


@dataclass(frozen=True)
class Mode:
    """The checks of a launch, beyond illegal addresses and deadlocks, which are always seen.

    Attributes:
        late_copies: Asynchronous copies and products take effect only at the wait for them; until
            then their target holds NaN. Finds waits and commits that are missing or too weak.
        random_order: Warps and lanes run in a seeded random order and give way at memory accesses.
            Finds missing barriers, and with them stores that are counted before other blocks can
            see them.
        poison: Shared memory begins as NaN, and writes behind its end are reported.
        count_banks: Bank conflicts are counted (`Statistics`).
        guards: Every buffer lies between regions that fault, and begins as NaN.
        sanitized: Kernels are built under AddressSanitizer and UndefinedBehaviorSanitizer, and may
            not touch a byte beside their buffers (with guards) and shared memory. Only
            `wpk.emulator.child.EmulatorProcess` executes them; slow.
    """

    late_copies: bool = False
    random_order: bool = False
    poison: bool = False
    count_banks: bool = False
    guards: bool = False
    sanitized: bool = False

    @property
    def bits(self) -> int:
        """What the runtime library takes."""
        return (
            _LATE_COPIES * self.late_copies
            | _RANDOM_ORDER * self.random_order
            | _POISON * self.poison
            | _COUNT_BANKS * self.count_banks
        )

    @property
    def checking(self) -> bool:
        """Whether kernels must be built with their hooks for the runtime library."""
        return self.bits != 0


FAST = Mode()
GUARDED = Mode(guards=True)
SANITIZED = Mode(guards=True, sanitized=True)
CHECKING = Mode(late_copies=True, random_order=True, poison=True, count_banks=True, guards=True)
