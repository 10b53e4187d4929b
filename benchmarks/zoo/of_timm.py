"""Networks of timm, as they are, of families that torchvision does not have; and any other of its list."""

from __future__ import annotations

from functools import partial
from typing import Any

from exporters.architecture import Architecture, Given

from zoo.network import ZooNetwork

_CLASSIFIERS = {
    "resnest": "resnest14d",
    "deit": "deit_small_patch16_224",
    "mixer": "mixer_b16_224",
    "coatnet": "coatnet_nano_rw_224",
    "mobilevit": "mobilevit_s",
    "ghostnet": "ghostnet_100",
    "repvgg": "repvgg_a2",
    "nfnet": "dm_nfnet_f0",
    "hrnet": "hrnet_w18",
    "levit": "levit_256",
    "edgenext": "edgenext_small",
    "poolformer": "poolformer_s12",
}


def build(name: str) -> Any:
    """A network of timm's list, of torch's present seed."""
    import timm

    return timm.create_model(name, pretrained=False)


def input_size(name: str) -> tuple[int, int, int]:
    """Channels, height and width of the image that a network is for.

    Raises:
        KeyError: timm has no such network.
    """
    import timm

    if not timm.is_model(name):
        raise KeyError(name)
    sizes: tuple[int, int, int] = timm.get_pretrained_cfg(name, allow_unregistered=False).input_size
    return sizes


def classifier(name: str, size: tuple[int, int, int]) -> Architecture:
    """A network of timm's list, from its image."""
    given = Given("image", ("batch", *size))
    return Architecture(name, "timm", "classification", partial(build, name), (given,))


def networks() -> list[ZooNetwork]:
    """All of them."""
    return [
        ZooNetwork(
            family, classifier(name, (3, 224, 224) if family != "mobilevit" else (3, 256, 256))
        )
        for family, name in _CLASSIFIERS.items()
    ]
