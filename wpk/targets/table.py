"""The GPUs that wpk knows by name, each number with its source (`wpk.targets.entry` says the rules)."""

from wpk.targets.ada import L4, L40S, RTX4080, RTX4090
from wpk.targets.ampere import (
    A10,
    A30,
    A100,
    A100_40GB,
    ORIN,
    RTX3060,
    RTX3070,
    RTX3080,
    RTX3090,
)
from wpk.targets.since_hopper import B200, H100, H100_PCIE, H200, RTX5080, RTX5090, THOR
from wpk.targets.target import Target
from wpk.targets.until_turing import P100, RTX2080, T4, V100

TARGETS: tuple[Target, ...] = (
    P100,
    V100,
    RTX2080,
    T4,
    A100,
    A100_40GB,
    A30,
    A10,
    RTX3060,
    RTX3070,
    RTX3080,
    RTX3090,
    ORIN,
    L4,
    L40S,
    RTX4080,
    RTX4090,
    H100,
    H100_PCIE,
    H200,
    B200,
    THOR,
    RTX5080,
    RTX5090,
)
"""All targets, the oldest compute capability first."""
