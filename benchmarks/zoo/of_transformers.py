"""Networks of transformers, as wide and as deep as those that are published under their names."""

from __future__ import annotations

from functools import partial
from typing import Any

from exporters.architecture import Architecture, Given
from exporters.transformers_module import HIDDEN, LOGITS, module_of

from zoo.network import LARGE_BATCH, ZooNetwork

_BASE = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
}

_ENCODERS: dict[str, tuple[str, str, int, int, dict[str, Any]]] = {
    "bert": ("bert_base", "BertModel", 30522, 128, _BASE),
    "roberta": (
        "roberta_base",
        "RobertaModel",
        50265,
        384,
        {**_BASE, "max_position_embeddings": 514},
    ),
    "distilbert": ("distilbert_base", "DistilBertModel", 30522, 128, {}),
    "albert": ("albert_base", "AlbertModel", 30000, 384, _BASE),
    "t5": ("t5_small_encoder", "T5EncoderModel", 32128, 128, {"d_ff": 2048, "num_heads": 8}),
}
"""By family: name, class, words of its vocabulary, tokens of a sentence, sizes other than its own."""

_LLAMA = {
    "hidden_size": 1024,
    "num_hidden_layers": 12,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "intermediate_size": 2816,
}

_DECODERS: dict[str, tuple[str, str, int, int, dict[str, Any]]] = {
    "gpt2": ("gpt2_small", "GPT2LMHeadModel", 50257, 128, {}),
    "llama": ("llama_small", "LlamaForCausalLM", 32000, 128, _LLAMA),
}
"""The same; what they are asked is to read a prompt (prefill), without a cache before it."""

_SEGFORMER = {
    "hidden_sizes": [32, 64, 160, 256],
    "depths": [2, 2, 2, 2],
    "num_attention_heads": [1, 2, 5, 8],
    "decoder_hidden_size": 256,
    "num_labels": 150,
}

_CLIP = {**_BASE, "image_size": 224, "patch_size": 32}

_SENSES: dict[str, tuple[str, str, str, Given, str, dict[str, Any], str]] = {
    "segformer": (
        "segformer_b0",
        "SegformerForSemanticSegmentation",
        "segmentation",
        Given("image", ("batch", 3, 512, 512)),
        "pixel_values",
        _SEGFORMER,
        LOGITS,
    ),
    "clip": (
        "clip_vit_b32",
        "CLIPVisionModel",
        "encoder",
        Given("image", ("batch", 3, 224, 224)),
        "pixel_values",
        _CLIP,
        HIDDEN,
    ),
    "wav2vec2": (
        "wav2vec2_base",
        "Wav2Vec2Model",
        "speech",
        Given("sound", ("batch", 16000)),
        "input_values",
        _BASE,
        HIDDEN,
    ),
    "ast": (
        "audio_spectrogram_transformer",
        "ASTForAudioClassification",
        "speech",
        Given("spectrum", ("batch", 1024, 128)),
        "input_values",
        _BASE,
        LOGITS,
    ),
}

_LARGE_BATCHES = {"ast": 4}
"""Of families that have no room, nor time, for as many as the others: each layer of AST attends over 1214 tokens."""


def _whisper() -> Any:
    """The encoder of Whisper base, of 30 s of sound."""
    import torch
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    sizes = {"d_model": 512, "encoder_layers": 6, "encoder_attention_heads": 8}

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = WhisperEncoder(WhisperConfig(encoder_ffn_dim=2048, **sizes))

        def forward(self, mels: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = self.inner(mels).last_hidden_state
            return found

    return Encoder()


def networks() -> list[ZooNetwork]:
    """All of them."""
    found = []
    for table, kind, output in ((_ENCODERS, "encoder", HIDDEN), (_DECODERS, "decoder", LOGITS)):
        for family, (name, model, words, length, sizes) in table.items():
            given = Given("tokens", ("batch", length), words)
            build = partial(
                module_of, model, {"vocab_size": words, **sizes}, ("input_ids",), output
            )
            found.append(_network(family, name, kind, build, given))
    for family, (name, model, kind, given, argument, sizes, output) in _SENSES.items():
        build = partial(module_of, model, sizes, (argument,), output)
        found.append(_network(family, name, kind, build, given))
    mels = Given("mels", ("batch", 80, 3000))
    return [*found, _network("whisper", "whisper_base_encoder", "speech", _whisper, mels)]


def _network(family: str, name: str, kind: str, build: Any, given: Given) -> ZooNetwork:
    architecture = Architecture(name, "transformers", kind, build, (given,))
    return ZooNetwork(family, architecture, _LARGE_BATCHES.get(family, LARGE_BATCH))
