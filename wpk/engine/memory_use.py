"""The memory that an engine holds on its device."""

from dataclasses import astuple, dataclass


@dataclass(frozen=True)
class MemoryUse:
    """Bytes that an engine has allocated at the moment.

    Attributes:
        weight_bytes: Weights, as kernels read them.
        arena_bytes: Activations; grows with the largest size that was run.
        workspace_bytes: Scratch memory of operators, and their counters.
        output_bytes: Output arrays that the engine keeps for runs on GPU arrays.
    """

    weight_bytes: int
    arena_bytes: int
    workspace_bytes: int
    output_bytes: int

    @property
    def total_bytes(self) -> int:
        """The sum of all these; machine code and what the driver needs are not counted."""
        return sum(astuple(self))

    def __str__(self) -> str:
        """``46.8 MiB on the device: weights 44.6, activations 2.2, workspace 0.0, outputs 0.0``."""
        names = ("weights", "activations", "workspace", "outputs")
        parts = zip(names, astuple(self), strict=True)
        words = ", ".join(f"{name} {_mib(size)}" for name, size in parts)
        return f"{_mib(self.total_bytes)} MiB on the device: {words}"


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f}"
