"""Which target a GPU is that a driver names."""

from __future__ import annotations

import re

from wpk.targets.registry import find_target
from wpk.targets.table import TARGETS
from wpk.targets.target import Target

_MAKER = re.compile(r"\b(nvidia|tesla|geforce|jetson|agx)\b")

_SPELT: dict[str, tuple[str, ...]] = {
    "a100": ("a100 sxm4 80gb", "a100 80gb pcie"),
    "a100-40gb": ("a100 sxm4 40gb", "a100 pcie 40gb"),
    "h100": ("h100 80gb hbm3", "h100 sxm5 80gb"),
    "h100-pcie": ("h100 pcie",),
    "p100": ("p100 sxm2 16gb", "p100 pcie 16gb"),
    "v100": ("v100 sxm2 16gb", "v100 sxm2 32gb", "v100 pcie 16gb", "v100 pcie 32gb"),
}
"""What drivers call a target beside its own name, in small letters and without the maker's words."""


def target_of_gpu(name: str, capability: tuple[int, int]) -> Target:
    """The target that a GPU is, or the one that stands for its architecture.

    A name must fit wholly: an RTX 3080 Ti is no RTX 3080, and an H100 NVL has more bandwidth than
    the other H100s.

    Args:
        name: As the driver says it, e.g. ``NVIDIA GeForce RTX 4090``; what follows in parentheses is left out.
        capability: Its major and minor compute capability.

    Raises:
        TargetError: No known target has this architecture.
    """
    shown = _MAKER.sub(" ", name.partition("(")[0].lower().replace("-", " "))
    words = " ".join(shown.split())
    for target in TARGETS:
        own = (target.name, *_SPELT.get(target.name, ()))
        if target.capability == capability and (words in own or words.replace(" ", "") in own):
            return target
    major, minor = capability
    return find_target(f"sm_{major}{minor}")
