"""Networks of transformers, each of two narrow layers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from exporters.architecture import Architecture, Given

_WORDS = 97
_TOKENS = Given("tokens", ("batch", "sequence"), _WORDS)
_MASK = Given("mask", ("batch", "sequence"), 2)
_TARGET = Given("target", ("batch", "target"), _WORDS)
_IMAGE = Given("image", ("batch", 3, 64, 64))
_SOUND = Given("sound", ("batch", 1600))
_MELS = Given("mels", ("batch", 80, 60))

_COMMON = {
    "vocab_size": _WORDS,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
_GROUPED = {**_COMMON, "num_key_value_heads": 2}
_VIT = {**_COMMON, "image_size": 64, "patch_size": 16}


def _module(name: str, sizes: Mapping[str, Any], given: tuple[str, ...], output: str) -> Any:
    """A model of transformers as a function of tensors.

    Args:
        name: Of the class of the model, whose configuration is made of the sizes.
        sizes: Fields of the configuration.
        given: Names that ``forward`` gives its inputs, in their order.
        output: Of what the model returns; or several, apart by commas.
    """
    import torch
    import transformers

    kind = getattr(transformers, name)
    config = kind.config_class(**sizes)
    config.use_cache = False

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = kind(config)

        def forward(self, *tensors: Any) -> Any:
            found = self.inner(**dict(zip(given, tensors, strict=True)))
            wanted = [getattr(found, each) for each in output.split(",")]
            return wanted[0] if len(wanted) == 1 else tuple(wanted)

    return Module().eval()


_HIDDEN, _LOGITS = "last_hidden_state", "logits"
_TEXT = ("input_ids", "attention_mask")

_ENCODERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "bert": ("BertModel", _COMMON, f"{_HIDDEN},pooler_output"),
    "bert_classifier": ("BertForSequenceClassification", _COMMON, _LOGITS),
    "bert_masked": ("BertForMaskedLM", _COMMON, _LOGITS),
    "roberta": ("RobertaModel", _COMMON, _HIDDEN),
    "xlm_roberta": ("XLMRobertaForTokenClassification", _COMMON, _LOGITS),
    "distilbert": (
        "DistilBertModel",
        {"vocab_size": _WORDS, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128},
        _HIDDEN,
    ),
    "albert": ("AlbertModel", {**_COMMON, "embedding_size": 32}, _HIDDEN),
    "electra": ("ElectraModel", {**_COMMON, "embedding_size": 32}, _HIDDEN),
    "mpnet": ("MPNetModel", _COMMON, _HIDDEN),
    "deberta_v2": (
        "DebertaV2Model",
        {**_COMMON, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
        _HIDDEN,
    ),
    "convbert": ("ConvBertModel", {**_COMMON, "embedding_size": 64}, _HIDDEN),
    "layoutlm_text": ("LayoutLMModel", _COMMON, _HIDDEN),
    "mobilebert": (
        "MobileBertModel",
        {**_COMMON, "embedding_size": 32, "intra_bottleneck_size": 32, "true_hidden_size": 32},
        _HIDDEN,
    ),
    "squeezebert": ("SqueezeBertModel", {**_COMMON, "embedding_size": 64}, _HIDDEN),
    "funnel": (
        "FunnelBaseModel",
        {
            "vocab_size": _WORDS,
            "block_sizes": [1, 1],
            "d_model": 64,
            "n_head": 4,
            "d_head": 16,
            "d_inner": 128,
        },
        _HIDDEN,
    ),
    "fnet": ("FNetModel", {**_COMMON}, _HIDDEN),
    "nystromformer": ("NystromformerModel", {**_COMMON, "num_landmarks": 4}, _HIDDEN),
    "modernbert": ("ModernBertModel", {**_COMMON, "pad_token_id": 0}, _HIDDEN),
    "esm": ("EsmModel", {**_COMMON, "mask_token_id": 5, "pad_token_id": 1}, _HIDDEN),
    "roformer": ("RoFormerModel", {**_COMMON, "embedding_size": 64}, _HIDDEN),
    "t5_encoder": (
        "T5EncoderModel",
        {"vocab_size": _WORDS, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4},
        _HIDDEN,
    ),
}
"""Of tokens and a mask."""

_GPT2 = {"vocab_size": _WORDS, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64}
_OPT = {"vocab_size": _WORDS, "hidden_size": 64, "num_hidden_layers": 2, "ffn_dim": 128}
_MOE = {**_GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}

_DECODERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "gpt2": ("GPT2LMHeadModel", _GPT2, _LOGITS),
    "gpt_neox": ("GPTNeoXForCausalLM", _COMMON, _LOGITS),
    "gptj": ("GPTJForCausalLM", {**_GPT2, "rotary_dim": 8}, _LOGITS),
    "opt": (
        "OPTForCausalLM",
        {**_OPT, "num_attention_heads": 4, "word_embed_proj_dim": 64, "max_position_embeddings": 64},
        _LOGITS,
    ),
    "bloom": ("BloomForCausalLM", {"vocab_size": _WORDS, "hidden_size": 64, "n_layer": 2, "n_head": 4}, _LOGITS),
    "falcon": ("FalconForCausalLM", _COMMON, _LOGITS),
    "llama": ("LlamaForCausalLM", _GROUPED, _LOGITS),
    "mistral": ("MistralForCausalLM", {**_GROUPED, "sliding_window": 8}, _LOGITS),
    "qwen2": ("Qwen2ForCausalLM", _GROUPED, _LOGITS),
    "qwen3": ("Qwen3ForCausalLM", {**_GROUPED, "head_dim": 16}, _LOGITS),
    "gemma": ("GemmaForCausalLM", {**_GROUPED, "head_dim": 16}, _LOGITS),
    "gemma2": ("Gemma2ForCausalLM", {**_GROUPED, "head_dim": 16}, _LOGITS),
    "phi": ("PhiForCausalLM", _COMMON, _LOGITS),
    "phi3": ("Phi3ForCausalLM", {**_GROUPED, "pad_token_id": 0}, _LOGITS),
    "olmo2": ("Olmo2ForCausalLM", {**_GROUPED, "pad_token_id": 0}, _LOGITS),
    "granite": ("GraniteForCausalLM", _GROUPED, _LOGITS),
    "stablelm": ("StableLmForCausalLM", _GROUPED, _LOGITS),
    "starcoder2": ("Starcoder2ForCausalLM", _GROUPED, _LOGITS),
    "cohere": ("CohereForCausalLM", _GROUPED, _LOGITS),
    "smollm3": ("SmolLM3ForCausalLM", {**_GROUPED, "pad_token_id": 0}, _LOGITS),
    "mixtral": ("MixtralForCausalLM", _MOE, _LOGITS),
    "mamba": ("MambaForCausalLM", {"vocab_size": _WORDS, "hidden_size": 32, "num_hidden_layers": 2}, _LOGITS),
}
"""Of tokens and a mask, without a cache."""

_SEQ2SEQ = {
    "vocab_size": _WORDS,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
}
_T5 = {"vocab_size": _WORDS, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
_BOTH = ("input_ids", "attention_mask", "decoder_input_ids")

_TRANSLATORS: dict[str, tuple[str, dict[str, Any], str]] = {
    "t5": ("T5ForConditionalGeneration", _T5, _LOGITS),
    "bart": ("BartForConditionalGeneration", _SEQ2SEQ, _LOGITS),
    "marian": ("MarianMTModel", {**_SEQ2SEQ, "pad_token_id": 0}, _LOGITS),
    "pegasus": ("PegasusForConditionalGeneration", _SEQ2SEQ, _LOGITS),
}
"""Of tokens, a mask and the tokens said so far."""

_TOWER = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
_CLIP = {
    "text_config": {**_COMMON, "max_position_embeddings": 32, "eos_token_id": 96},
    "vision_config": {**_TOWER, "image_size": 64, "patch_size": 16},
    "projection_dim": 32,
}
_SIGLIP = {
    "text_config": {**_COMMON, "max_position_embeddings": 12},
    "vision_config": {**_TOWER, "image_size": 64, "patch_size": 16},
}
_RESNET = {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "layer_type": "basic"}

_VISION: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "vit": ("encoder", "ViTModel", _VIT, _HIDDEN),
    "vit_classifier": ("classification", "ViTForImageClassification", _VIT, _LOGITS),
    "deit": ("encoder", "DeiTModel", _VIT, _HIDDEN),
    "beit": ("encoder", "BeitModel", {**_VIT, "use_relative_position_bias": True}, _HIDDEN),
    "dinov2": ("encoder", "Dinov2Model", _VIT, _HIDDEN),
    "swin": (
        "classification",
        "SwinForImageClassification",
        {"image_size": 64, "embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4},
        _LOGITS,
    ),
    "convnext": (
        "classification",
        "ConvNextForImageClassification",
        {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2},
        _LOGITS,
    ),
    "resnet": ("classification", "ResNetForImageClassification", _RESNET, _LOGITS),
    "mobilevit": (
        "classification",
        "MobileViTForImageClassification",
        {"hidden_sizes": [32, 48, 64], "neck_hidden_sizes": [8, 16, 24, 32, 40, 48, 64], "image_size": 64},
        _LOGITS,
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
        _LOGITS,
    ),
    "dpt": (
        "segmentation",
        "DPTForDepthEstimation",
        {
            **_VIT,
            "num_hidden_layers": 4,
            "backbone_out_indices": [0, 1, 2, 3],
            "neck_hidden_sizes": [16, 16, 32, 32],
            "fusion_hidden_size": 16,
        },
        "predicted_depth",
    ),
    "yolos": ("detection", "YolosForObjectDetection", {**_VIT, "image_size": [64, 64], "num_detection_tokens": 10}, f"{_LOGITS},pred_boxes"),
    "glpn": (
        "segmentation",
        "GLPNForDepthEstimation",
        {"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 3, 4], "decoder_hidden_size": 32},
        "predicted_depth",
    ),
    "poolformer": (
        "classification",
        "PoolFormerForImageClassification",
        {"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1]},
        _LOGITS,
    ),
    "levit": ("classification", "LevitForImageClassification", {"image_size": 64, "hidden_sizes": [32, 48, 64], "num_attention_heads": [2, 3, 4], "depths": [1, 1, 1], "key_dim": [16, 16, 16]}, _LOGITS),
    "clip_vision": ("encoder", "CLIPVisionModel", {**_TOWER, "image_size": 64, "patch_size": 16}, _HIDDEN),
}
"""Of an image."""

_W2V = {
    **_COMMON,
    "conv_dim": [32, 32, 32],
    "conv_kernel": [10, 3, 3],
    "conv_stride": [5, 2, 2],
    "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
_WHISPER = {
    **_SEQ2SEQ,
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
    sizes = {**_SEQ2SEQ, "num_queries": 10, "num_labels": 5, "use_timm_backbone": False}
    del sizes["vocab_size"]
    sizes |= {"backbone_config": backbone, "use_pretrained_backbone": False, "backbone": None}
    return _module("DetrForObjectDetection", sizes, ("pixel_values",), f"{_LOGITS},pred_boxes")


def _cached_llama() -> Any:
    """A decoder with its cache of keys and values as inputs and outputs, one token at a time."""
    import torch
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

    class Cached(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = LlamaForCausalLM(LlamaConfig(**_GROUPED))

        def forward(self, tokens: Any, *past: Any) -> Any:
            cache = DynamicCache()
            for layer in range(len(past) // 2):
                cache.update(past[2 * layer], past[2 * layer + 1], layer)
            found = self.inner(input_ids=tokens, past_key_values=cache, use_cache=True)
            states = [each for layer in cache.layers for each in (layer.keys, layer.values)]
            return (found.logits, *states)

    return Cached().eval()


def _cache_inputs() -> tuple[Given, ...]:
    shape = ("batch", 2, "sequence", 16)
    past = [Given(f"past_{what}_{n}", shape) for n in range(2) for what in ("keys", "values")]
    return (Given("tokens", ("batch", 1), _WORDS), *past)


def _rows() -> list[tuple[str, str, Any, tuple[Given, ...]]]:
    text, both = (_TOKENS, _MASK), (_TOKENS, _MASK, _TARGET)
    rows: list[tuple[str, str, Any, tuple[Given, ...]]] = []
    for names, kind, table, inputs in (
        (_TEXT, "encoder", _ENCODERS, text),
        (_TEXT, "decoder", _DECODERS, text),
        (_BOTH, "translation", _TRANSLATORS, both),
    ):
        for name, (model, sizes, output) in table.items():
            rows.append((name, kind, partial(_module, model, sizes, names, output), inputs))
    for name, (kind, model, sizes, output) in _VISION.items():
        build = partial(_module, model, sizes, ("pixel_values",), output)
        rows.append((name, kind, build, (_IMAGE,)))
    for name, model in (("wav2vec2", "Wav2Vec2Model"), ("hubert", "HubertModel")):
        build = partial(_module, model, _W2V, ("input_values",), _HIDDEN)
        rows.append((name, "encoder", build, (_SOUND,)))
    ctc = partial(_module, "Wav2Vec2ForCTC", _W2V, ("input_values",), _LOGITS)
    return [*rows, ("wav2vec2_ctc", "encoder", ctc, (_SOUND,)), *_others()]


def _others() -> list[tuple[str, str, Any, tuple[Given, ...]]]:
    pairs = ("input_ids", "pixel_values", "attention_mask")
    clip = partial(_module, "CLIPModel", _CLIP, pairs, "logits_per_image,text_embeds")
    embeddings = partial(_module, "CLIPModel", _CLIP, pairs, "text_embeds,image_embeds")
    siglip = partial(_module, "SiglipModel", _SIGLIP, pairs, "logits_per_image,text_embeds")
    heard = ("input_features", "decoder_input_ids")
    whisper = partial(_module, "WhisperForConditionalGeneration", _WHISPER, heard, _LOGITS)
    return [
        ("clip", "matching", clip, (_TOKENS, _IMAGE, _MASK)),
        ("clip_embeddings", "encoder", embeddings, (_TOKENS, _IMAGE, _MASK)),
        ("siglip", "matching", siglip, (_TOKENS, _IMAGE, _MASK)),
        ("whisper", "speech", whisper, (_MELS, _TARGET)),
        ("detr", "detection", _detr, (_IMAGE,)),
        ("llama_cached", "decoder", _cached_llama, _cache_inputs()),
    ]


def architectures() -> list[Architecture]:
    """All of them."""
    return [Architecture(f"hf_{name}", "transformers", *rest) for name, *rest in _rows()]
