"""Networks of timm: the smallest of each family, and families' forms for tests."""

from __future__ import annotations

from functools import partial
from typing import Any

from exporters.architecture import Architecture, Given

_TESTS = [
    "test_byobnet",
    "test_coatnet",
    "test_convnext",
    "test_convnext2",
    "test_convnext3",
    "test_efficientnet",
    "test_efficientnet_evos",
    "test_efficientnet_gn",
    "test_efficientnet_ln",
    "test_mambaout",
    "test_maxvit",
    "test_nfnet",
    "test_resnet",
    "test_vit",
    "test_vit2",
    "test_vit3",
    "test_vit4",
    "test_vit_relpos",
]
"""Of two or three narrow layers, made by timm for its own tests, with images of 160 pixels."""

_FREE_SIZE = [
    "convnext_atto",
    "convnextv2_atto",
    "cs3darknet_focus_s",
    "darknet17",
    "dla46_c",
    "dla46x_c",
    "edgenext_xx_small",
    "efficientnet_lite0",
    "fastvit_t8",
    "gernet_s",
    "ghostnet_050",
    "ghostnetv2_100",
    "hardcorenas_a",
    "hgnetv2_b0",
    "hrnet_w18_small",
    "inception_next_atto",
    "lcnet_050",
    "mixnet_s",
    "mnasnet_small",
    "mobilenetv3_small_050",
    "mobilenetv4_conv_small_035",
    "mobileone_s0",
    "mobilevit_xxs",
    "mobilevitv2_050",
    "poolformer_s12",
    "poolformerv2_s12",
    "pvt_v2_b0",
    "rdnet_tiny",
    "regnetx_002",
    "regnety_002",
    "regnetz_005",
    "repghostnet_050",
    "repvgg_a0",
    "repvit_m0_9",
    "res2net50_14w_8s",
    "resnest14d",
    "resnet10t",
    "resnetv2_18",
    "rexnetr_100",
    "selecsls42",
    "semnasnet_050",
    "seresnet18",
    "shvit_s1",
    "skresnet18",
    "spnasnet_100",
    "starnet_s050",
    "tf_efficientnetv2_b0",
    "tinynet_e",
    "tresnet_m",
    "vovnet39a",
    "xception41",
    "mobilenetv2_035",
    "fbnetc_100",
    "fbnetv3_b",
    "eca_resnet33ts",
    "bat_resnext26ts",
    "botnet26t_256",
    "halonet26t",
    "lambda_resnet26t",
    "gcresnet33ts",
    "efficientvit_b0",
    "swiftformer_xs",
    "mambaout_femto",
    "focalnet_tiny_srf",
    "caformer_s18",
    "convformer_s18",
    "resmlp_12_224",
    "efficientformerv2_s0",
    "levit_128s",
]
"""Convolutional networks and hybrids; those that fix their image take it of timm's size."""

_FIXED_SIZE = {
    "beit_base_patch16_224": {"depth": 2, "embed_dim": 64, "num_heads": 4},
    "cait_xxs24_224": {"depth": 2, "embed_dim": 64},
    "convit_tiny": {"depth": 3, "embed_dim": 48},
    "deit_tiny_distilled_patch16_224": {"depth": 2},
    "deit3_small_patch16_224": {"depth": 2, "embed_dim": 64, "num_heads": 4},
    "eva02_tiny_patch14_224": {"depth": 2, "embed_dim": 64, "num_heads": 4},
    "mixer_s32_224": {},
    "pit_ti_224": {},
    "swin_tiny_patch4_window7_224": {"depths": (2, 2), "embed_dim": 24, "num_heads": (2, 4)},
    "tnt_s_legacy_patch16_224": {"depth": 2},
    "twins_svt_small": {"depths": (1, 1, 1, 1)},
    "vit_tiny_patch16_224": {"depth": 2},
    "vit_relpos_small_patch16_224": {"depth": 2, "embed_dim": 64, "num_heads": 4},
    "volo_d1_224": {"layers": (1, 1, 1, 1)},
    "xcit_nano_12_p16_224": {"depth": 2},
    "crossvit_tiny_240": {},
    "coat_tiny": {"serial_depths": (1, 1, 1, 1), "parallel_depth": 1},
    "visformer_tiny": {},
    "nest_tiny": {"depths": (1, 1, 1), "embed_dims": (32, 64, 96), "num_heads": (2, 4, 6)},
    "sequencer2d_s": {"layers": (1, 1, 1, 1)},
}
"""Transformers and mixers, with few or narrow layers."""


def _made(name: str, **more: Any) -> Any:
    import timm

    return timm.create_model(name, num_classes=10, **more)


def _image(side: int) -> tuple[Given, ...]:
    return (Given("image", ("batch", 3, side, side)),)


_OWN_SIDE = {"levit_128s": 224, "efficientformerv2_s0": 224, "resmlp_12_224": 224}
_OWN_SIDE |= {"botnet26t_256": 256, "halonet26t": 256, "lambda_resnet26t": 256}
_OWN_SIDE |= {"bat_resnext26ts": 256}


def architectures() -> list[Architecture]:
    """All of them."""
    rows: list[tuple[str, dict[str, Any], int]] = [(name, {}, 160) for name in _TESTS]
    rows += [(name, {}, _OWN_SIDE.get(name, 64)) for name in _FREE_SIZE]
    rows += [(name, more, 240 if "240" in name else 224) for name, more in _FIXED_SIZE.items()]
    return [
        Architecture(
            f"timm_{name}", "timm", "classification", partial(_made, name, **more), _image(side)
        )
        for name, more, side in rows
    ]
