"""Networks of torchvision, with images of 64 pixels; detectors and transformers with few or narrow layers."""

from __future__ import annotations

from functools import partial
from typing import Any

from exporters.architecture import Architecture, Given

_IMAGE = (Given("image", ("batch", 3, 64, 64)),)
_LARGER = (Given("image", ("batch", 3, 96, 96)),)
_PICTURE = (Given("image", (1, 3, 64, 64)),)
_VIDEO = (Given("video", ("batch", 3, 8, 32, 32)),)
_PAIR = (Given("first", ("batch", 3, 128, 128)), Given("second", ("batch", 3, 128, 128)))
_CLASSES = 10


def _named(name: str, **more: Any) -> Any:
    import torchvision

    return torchvision.models.get_model(name, weights=None, num_classes=_CLASSES, **more)


def _first(module: Any, key: str | None = None) -> Any:
    """What a segmentation network or an optical flow says first, as the only output."""
    import torch

    class First(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = module

        def forward(self, *given: Any) -> Any:
            found = self.inner(*given)
            return found[key] if key else found[-1]

    return First()


def _segmentation(name: str) -> Any:
    return _first(_named(name, weights_backbone=None), "out")


def _detector(kind: str, **more: Any) -> Any:
    """A detector on a feature pyramid of ResNet-18; its size is the image's."""
    import torch
    from torchvision.models import detection
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

    backbone = resnet_fpn_backbone(
        backbone_name="resnet18", weights=None, trainable_layers=5, norm_layer=torch.nn.BatchNorm2d
    )
    limits = {"min_size": 64, "max_size": 64, **more}
    inner = getattr(detection, kind)(backbone, num_classes=5, **limits)
    return _one_image(inner)


def _ready_detector(name: str, **more: Any) -> Any:
    return _one_image(_named(name, weights_backbone=None, **more))


def _one_image(inner: Any) -> Any:
    """A detector as a function of one image, to the tensors that it finds."""
    import torch

    class OneImage(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
            (found,) = self.inner([image[0]])
            return tuple(found.values())

    return OneImage()


def _vit() -> Any:
    from torchvision.models import VisionTransformer

    sizes = {"image_size": 64, "patch_size": 16, "num_layers": 2, "num_heads": 4}
    return VisionTransformer(hidden_dim=64, mlp_dim=128, num_classes=_CLASSES, **sizes)


def _swin(version: int) -> Any:
    from torchvision.models import swin_transformer

    more = {"downsample_layer": swin_transformer.PatchMergingV2} if version == 2 else {}
    block = ("SwinTransformerBlock", "SwinTransformerBlockV2")[version - 1]
    return swin_transformer.SwinTransformer(
        patch_size=[4, 4],
        embed_dim=32,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=[4, 4],
        num_classes=_CLASSES,
        block=getattr(swin_transformer, block),
        **more,
    )


def _maxvit() -> Any:
    from torchvision.models import MaxVit

    return MaxVit(
        input_size=(64, 64),
        stem_channels=16,
        partition_size=4,
        block_channels=[16, 32],
        block_layers=[1, 1],
        head_dim=8,
        stochastic_depth_prob=0.0,
        num_classes=_CLASSES,
    )


def _convnext() -> Any:
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return ConvNeXt([CNBlockConfig(24, 48, 2), CNBlockConfig(48, None, 2)], num_classes=_CLASSES)


def _swin3d() -> Any:
    from torchvision.models.video.swin_transformer import SwinTransformer3d

    return SwinTransformer3d(
        patch_size=[2, 4, 4],
        embed_dim=24,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=[2, 4, 4],
        num_classes=_CLASSES,
    )


def _mvit() -> Any:
    from torchvision.models.video.mvit import MSBlockConfig, MViT

    blocks = [
        MSBlockConfig(1, 16, 32, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 4, 4]),
        MSBlockConfig(2, 32, 32, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 2, 2]),
    ]
    sizes = {"spatial_size": (32, 32), "temporal_size": 8, "num_classes": _CLASSES}
    second = {"residual_pool": True, "residual_with_cls_embed": False, "rel_pos_embed": True}
    return MViT(block_setting=blocks, proj_after_attn=True, **sizes, **second)


def _raft() -> Any:
    import torchvision

    module = torchvision.models.optical_flow.raft_small()
    return _first(_with_updates(module, 2))


def _with_updates(module: Any, count: int) -> Any:
    module.forward = partial(module.forward, num_flow_updates=count)
    return module


_CLASSIFIERS = [
    "alexnet",
    "convnext_tiny",
    "densenet121",
    "densenet169",
    "efficientnet_b0",
    "efficientnet_b1",
    "efficientnet_v2_s",
    "mnasnet0_5",
    "mnasnet1_3",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "mobilenet_v3_small",
    "regnet_x_400mf",
    "regnet_x_1_6gf",
    "regnet_y_400mf",
    "regnet_y_800mf",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnext50_32x4d",
    "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_5",
    "squeezenet1_0",
    "squeezenet1_1",
    "vgg11_bn",
    "wide_resnet50_2",
]
"""By their names, as they are; at least 64 pixels wide."""

_VIDEOS = ("r3d_18", "mc3_18", "r2plus1d_18")
_SEGMENTATIONS = ("fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large")


def architectures() -> list[Architecture]:
    """All of them."""
    rows = [(name, "classification", partial(_named, name), _IMAGE) for name in _CLASSIFIERS]
    more = {"aux_logits": False, "init_weights": False}
    rows += [
        ("googlenet", "classification", partial(_named, "googlenet", **more), _IMAGE),
        ("inception_v3", "classification", partial(_named, "inception_v3", **more), _LARGER),
        ("vit_small", "classification", _vit, _IMAGE),
        ("swin_small", "classification", partial(_swin, 1), _IMAGE),
        ("swin_v2_small", "classification", partial(_swin, 2), _IMAGE),
        ("maxvit_small", "classification", _maxvit, _IMAGE),
        ("convnext_small", "classification", _convnext, _IMAGE),
        ("swin3d_small", "video", _swin3d, _VIDEO),
        ("mvit_small", "video", _mvit, _VIDEO),
        ("raft", "flow", _raft, _PAIR),
        ("faster_rcnn", "detection", partial(_detector, "FasterRCNN"), _PICTURE),
        ("mask_rcnn", "detection", partial(_detector, "MaskRCNN"), _PICTURE),
        ("keypoint_rcnn", "detection", partial(_detector, "KeypointRCNN"), _PICTURE),
        ("retinanet", "detection", partial(_detector, "RetinaNet"), _PICTURE),
        ("fcos", "detection", partial(_detector, "FCOS"), _PICTURE),
        ("ssdlite", "detection", partial(_ready_detector, _SSDLITE), _PICTURE),
    ]
    rows += [(name, "video", partial(_named, name), _VIDEO) for name in _VIDEOS]
    rows += [
        (name, "segmentation", partial(_segmentation, name), _IMAGE) for name in _SEGMENTATIONS
    ]
    return [Architecture(f"tv_{name}", "torchvision", *rest) for name, *rest in rows]


_SSDLITE = "ssdlite320_mobilenet_v3_large"
