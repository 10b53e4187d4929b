"""What networks of transformers are made of: narrow layers, and a module that takes and gives tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from exporters.architecture import Architecture, Given

WORDS = 97
"""Of the vocabulary."""

TOKENS = Given("tokens", ("batch", "sequence"), WORDS)
MASK = Given("mask", ("batch", "sequence"), 2)
TARGET = Given("target", ("batch", "target"), WORDS)
IMAGE = Given("image", ("batch", 3, 64, 64))
SOUND = Given("sound", ("batch", 1600))
MELS = Given("mels", ("batch", 80, 60))

COMMON = {
    "vocab_size": WORDS,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
}
GROUPED = {**COMMON, "num_key_value_heads": 2}
VIT = {**COMMON, "image_size": 64, "patch_size": 16}


SEQ2SEQ = {
    "vocab_size": WORDS,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
}

HIDDEN, LOGITS = "last_hidden_state", "logits"

Row = tuple[str, str, Any, tuple[Given, ...]]
"""A name, what the network does, what builds it, and its inputs."""


def module_of(name: str, sizes: Mapping[str, Any], given: tuple[str, ...], output: str) -> Any:
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


def of(rows: list[Row]) -> list[Architecture]:
    """Networks of transformers, by their rows."""
    return [Architecture(f"hf_{name}", "transformers", *rest) for name, *rest in rows]
