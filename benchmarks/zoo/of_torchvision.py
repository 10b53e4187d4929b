"""Networks of torchvision, as they are: classification, segmentation, and detectors up to their NMS."""

from __future__ import annotations

from functools import partial
from typing import Any

from exporters.architecture import Architecture, Given

from zoo.network import ZooNetwork

_IMAGE = Given("image", ("batch", 3, 224, 224))
_SCENE = Given("image", ("batch", 3, 512, 512))

_CLASSIFIERS = {
    "resnet": "resnet50",
    "resnext": "resnext50_32x4d",
    "vgg": "vgg16",
    "mobilenet-v2": "mobilenet_v2",
    "mobilenet-v3": "mobilenet_v3_large",
    "efficientnet": "efficientnet_b0",
    "efficientnet-v2": "efficientnet_v2_s",
    "regnet": "regnet_y_400mf",
    "densenet": "densenet121",
    "shufflenet": "shufflenet_v2_x1_0",
    "squeezenet": "squeezenet1_1",
    "mnasnet": "mnasnet1_0",
    "convnext": "convnext_tiny",
    "swin": "swin_t",
    "vit": "vit_b_16",
    "maxvit": "maxvit_t",
}


def _named(name: str, **more: Any) -> Any:
    import torchvision

    return torchvision.models.get_model(name, weights=None, **more)


def _segmentation(name: str) -> Any:
    """What a segmentation network says of every pixel, as the only output."""
    import torch

    class Segmentation(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = _named(name, weights_backbone=None)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.inner(image)["out"]
            return found

    return Segmentation()


def _detector(name: str, outputs: tuple[str, ...]) -> Any:
    """A detector from its normalised image to what its head says of every anchor: all before the NMS."""
    import torch
    from torch import nn

    # As for training from the start: a frozen normalisation without statistics does nothing.
    more = {} if name.startswith("ssd") else {"trainable_backbone_layers": 5}
    inner = _named(name, weights_backbone=None, **more)

    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone, self.head = inner.backbone, inner.head

        def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
            found = self.head(list(self.backbone(image).values()))
            return tuple(found[each] for each in outputs)

    return Heads()


_BOXES = ("cls_logits", "bbox_regression")


def networks() -> list[ZooNetwork]:
    """All of them."""
    classifiers = [
        _network(family, name, "classification", partial(_named, name), _IMAGE)
        for family, name in _CLASSIFIERS.items()
    ]
    more = {"aux_logits": False, "init_weights": False}
    inception = partial(_named, "inception_v3", **more)
    larger = Given("image", ("batch", 3, 299, 299))
    ssd = Given("image", ("batch", 3, 300, 300))
    return [
        *classifiers,
        _network(
            "googlenet",
            "googlenet",
            "classification",
            partial(_named, "googlenet", **more),
            _IMAGE,
        ),
        _network("inception", "inception_v3", "classification", inception, larger),
        *(
            _network(family, name, "segmentation", partial(_segmentation, name), _SCENE, 8)
            for family, name in (
                ("deeplab", "deeplabv3_resnet50"),
                ("lraspp", "lraspp_mobilenet_v3_large"),
            )
        ),
        _network(
            "ssd", "ssd300_vgg16", "detection", partial(_detector, "ssd300_vgg16", _BOXES), ssd, 8
        ),
        *(
            _network(family, name, "detection", partial(_detector, name, outputs), _SCENE, 8)
            for family, name, outputs in (
                ("retinanet", "retinanet_resnet50_fpn", _BOXES),
                ("fcos", "fcos_resnet50_fpn", (*_BOXES, "bbox_ctrness")),
            )
        ),
    ]


def _network(
    family: str, name: str, kind: str, build: Any, given: Given, large_batch: int = 32
) -> ZooNetwork:
    return ZooNetwork(family, Architecture(name, "torchvision", kind, build, (given,)), large_batch)
