"""Networks of transformers for images and sound, each of few narrow layers."""

from __future__ import annotations

from functools import partial
from typing import Any

from exporters.architecture import Architecture
from exporters.transformers_module import (
    COMMON,
    HIDDEN,
    IMAGE,
    LOGITS,
    MASK,
    MELS,
    SEQ2SEQ,
    SOUND,
    TARGET,
    TOKENS,
    VIT,
    Row,
    module_of,
    of,
)

_TOWER = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
_CLIP = {
    "text_config": {**COMMON, "max_position_embeddings": 32, "eos_token_id": 96},
    "vision_config": {**_TOWER, "image_size": 64, "patch_size": 16},
    "projection_dim": 32,
}
_SIGLIP = {
    "text_config": {**COMMON, "max_position_embeddings": 12},
    "vision_config": {**_TOWER, "image_size": 64, "patch_size": 16},
}
_RESNET = {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "layer_type": "basic"}

_VISION: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "vit": ("encoder", "ViTModel", VIT, HIDDEN),
    "vit_classifier": ("classification", "ViTForImageClassification", VIT, LOGITS),
    "deit": ("encoder", "DeiTModel", VIT, HIDDEN),
    "beit": ("encoder", "BeitModel", {**VIT, "use_relative_position_bias": True}, HIDDEN),
    "dinov2": ("encoder", "Dinov2Model", VIT, HIDDEN),
    "swin": (
        "classification",
        "SwinForImageClassification",
        {
            "image_size": 64,
            "embed_dim": 32,
            "depths": [2, 2],
            "num_heads": [2, 4],
            "window_size": 4,
        },
        LOGITS,
    ),
    "convnext": (
        "classification",
        "ConvNextForImageClassification",
        {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2},
        LOGITS,
    ),
    "resnet": ("classification", "ResNetForImageClassification", _RESNET, LOGITS),
    "mobilevit": (
        "classification",
        "MobileViTForImageClassification",
        {
            "hidden_sizes": [32, 48, 64],
            "neck_hidden_sizes": [8, 16, 24, 32, 40, 48, 64],
            "image_size": 64,
        },
        LOGITS,
    ),
    "segformer": (
        "segmentation",
        "SegformerForSemanticSegmentation",
        {
            "hidden_sizes": [16, 32, 48, 64],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 3, 4],
            "decoder_hidden_size": 32,
        },
        LOGITS,
    ),
    "dpt": (
        "segmentation",
        "DPTForDepthEstimation",
        {
            **VIT,
            "num_hidden_layers": 4,
            "backbone_out_indices": [0, 1, 2, 3],
            "neck_hidden_sizes": [16, 16, 32, 32],
            "fusion_hidden_size": 16,
        },
        "predicted_depth",
    ),
    "yolos": (
        "detection",
        "YolosForObjectDetection",
        {**VIT, "image_size": [64, 64], "num_detection_tokens": 10},
        f"{LOGITS},pred_boxes",
    ),
    "glpn": (
        "segmentation",
        "GLPNForDepthEstimation",
        {
            "hidden_sizes": [16, 32, 48, 64],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 3, 4],
            "decoder_hidden_size": 32,
        },
        "predicted_depth",
    ),
    "poolformer": (
        "classification",
        "PoolFormerForImageClassification",
        {"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1]},
        LOGITS,
    ),
    "levit": (
        "classification",
        "LevitForImageClassification",
        {
            "image_size": 64,
            "hidden_sizes": [32, 48, 64],
            "num_attention_heads": [2, 3, 4],
            "depths": [1, 1, 1],
            "key_dim": [16, 16, 16],
        },
        LOGITS,
    ),
    "clip_vision": (
        "encoder",
        "CLIPVisionModel",
        {**_TOWER, "image_size": 64, "patch_size": 16},
        HIDDEN,
    ),
}
"""Of an image."""

_W2V = {
    **COMMON,
    "conv_dim": [32, 32, 32],
    "conv_kernel": [10, 3, 3],
    "conv_stride": [5, 2, 2],
    "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
_WHISPER = {
    **SEQ2SEQ,
    "max_source_positions": 30,
    "max_target_positions": 16,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}


def _detr() -> Any:
    from transformers import ResNetConfig

    backbone = ResNetConfig(**_RESNET, out_features=["stage2"])
    sizes = {**SEQ2SEQ, "num_queries": 10, "num_labels": 5, "use_timm_backbone": False}
    del sizes["vocab_size"]
    sizes |= {"backbone_config": backbone, "use_pretrained_backbone": False, "backbone": None}
    return module_of("DetrForObjectDetection", sizes, ("pixel_values",), f"{LOGITS},pred_boxes")


def architectures() -> list[Architecture]:
    """All of them."""
    rows: list[Row] = []
    for name, (kind, model, sizes, output) in _VISION.items():
        build = partial(module_of, model, sizes, ("pixel_values",), output)
        rows.append((name, kind, build, (IMAGE,)))
    for name, model, output in (
        ("wav2vec2", "Wav2Vec2Model", HIDDEN),
        ("hubert", "HubertModel", HIDDEN),
        ("wav2vec2_ctc", "Wav2Vec2ForCTC", LOGITS),
    ):
        build = partial(module_of, model, _W2V, ("input_values",), output)
        rows.append((name, "encoder", build, (SOUND,)))
    return of([*rows, *_others()])


def _others() -> list[Row]:
    pairs = ("input_ids", "pixel_values", "attention_mask")
    clip = partial(module_of, "CLIPModel", _CLIP, pairs, "logits_per_image,text_embeds")
    embeddings = partial(module_of, "CLIPModel", _CLIP, pairs, "text_embeds,image_embeds")
    siglip = partial(module_of, "SiglipModel", _SIGLIP, pairs, "logits_per_image,text_embeds")
    heard = ("input_features", "decoder_input_ids")
    whisper = partial(module_of, "WhisperForConditionalGeneration", _WHISPER, heard, LOGITS)
    return [
        ("clip", "matching", clip, (TOKENS, IMAGE, MASK)),
        ("clip_embeddings", "encoder", embeddings, (TOKENS, IMAGE, MASK)),
        ("siglip", "matching", siglip, (TOKENS, IMAGE, MASK)),
        ("whisper", "speech", whisper, (MELS, TARGET)),
        ("detr", "detection", _detr, (IMAGE,)),
    ]
