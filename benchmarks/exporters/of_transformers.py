"""Networks of transformers for text, each of two narrow layers."""

from __future__ import annotations

from functools import partial
from typing import Any

from exporters.architecture import Architecture, Given
from exporters.transformers_module import (
    COMMON,
    GROUPED,
    HIDDEN,
    LOGITS,
    MASK,
    SEQ2SEQ,
    TARGET,
    TOKENS,
    WORDS,
    Row,
    module_of,
    of,
)

_TEXT = ("input_ids", "attention_mask")

_ENCODERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "bert": ("BertModel", COMMON, f"{HIDDEN},pooler_output"),
    "bert_classifier": ("BertForSequenceClassification", COMMON, LOGITS),
    "bert_masked": ("BertForMaskedLM", COMMON, LOGITS),
    "roberta": ("RobertaModel", COMMON, HIDDEN),
    "xlm_roberta": ("XLMRobertaForTokenClassification", COMMON, LOGITS),
    "distilbert": (
        "DistilBertModel",
        {"vocab_size": WORDS, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128},
        HIDDEN,
    ),
    "albert": ("AlbertModel", {**COMMON, "embedding_size": 32}, HIDDEN),
    "electra": ("ElectraModel", {**COMMON, "embedding_size": 32}, HIDDEN),
    "mpnet": ("MPNetModel", COMMON, HIDDEN),
    "deberta_v2": (
        "DebertaV2Model",
        {**COMMON, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
        HIDDEN,
    ),
    "convbert": ("ConvBertModel", {**COMMON, "embedding_size": 64}, HIDDEN),
    "layoutlm_text": ("LayoutLMModel", COMMON, HIDDEN),
    "mobilebert": (
        "MobileBertModel",
        {**COMMON, "embedding_size": 32, "intra_bottleneck_size": 32, "true_hidden_size": 32},
        HIDDEN,
    ),
    "squeezebert": ("SqueezeBertModel", {**COMMON, "embedding_size": 64}, HIDDEN),
    "funnel": (
        "FunnelBaseModel",
        {
            "vocab_size": WORDS,
            "block_sizes": [1, 1],
            "d_model": 64,
            "n_head": 4,
            "d_head": 16,
            "d_inner": 128,
        },
        HIDDEN,
    ),
    "fnet": ("FNetModel", {**COMMON}, HIDDEN),
    "nystromformer": ("NystromformerModel", {**COMMON, "num_landmarks": 4}, HIDDEN),
    "modernbert": ("ModernBertModel", {**COMMON, "pad_token_id": 0}, HIDDEN),
    "esm": ("EsmModel", {**COMMON, "mask_token_id": 5, "pad_token_id": 1}, HIDDEN),
    "roformer": ("RoFormerModel", {**COMMON, "embedding_size": 64}, HIDDEN),
    "t5_encoder": (
        "T5EncoderModel",
        {
            "vocab_size": WORDS,
            "d_model": 64,
            "d_kv": 16,
            "d_ff": 128,
            "num_layers": 2,
            "num_heads": 4,
        },
        HIDDEN,
    ),
}
"""Of tokens and a mask."""

_GPT2 = {"vocab_size": WORDS, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64}
_OPT = {"vocab_size": WORDS, "hidden_size": 64, "num_hidden_layers": 2, "ffn_dim": 128}
_MOE = {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}

_DECODERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "gpt2": ("GPT2LMHeadModel", _GPT2, LOGITS),
    "gpt_neox": ("GPTNeoXForCausalLM", COMMON, LOGITS),
    "gptj": ("GPTJForCausalLM", {**_GPT2, "rotary_dim": 8}, LOGITS),
    "opt": (
        "OPTForCausalLM",
        {
            **_OPT,
            "num_attention_heads": 4,
            "word_embed_proj_dim": 64,
            "max_position_embeddings": 64,
        },
        LOGITS,
    ),
    "bloom": (
        "BloomForCausalLM",
        {"vocab_size": WORDS, "hidden_size": 64, "n_layer": 2, "n_head": 4},
        LOGITS,
    ),
    "falcon": ("FalconForCausalLM", COMMON, LOGITS),
    "llama": ("LlamaForCausalLM", GROUPED, LOGITS),
    "mistral": ("MistralForCausalLM", {**GROUPED, "sliding_window": 8}, LOGITS),
    "qwen2": ("Qwen2ForCausalLM", GROUPED, LOGITS),
    "qwen3": ("Qwen3ForCausalLM", {**GROUPED, "head_dim": 16}, LOGITS),
    "gemma": ("GemmaForCausalLM", {**GROUPED, "head_dim": 16}, LOGITS),
    "gemma2": ("Gemma2ForCausalLM", {**GROUPED, "head_dim": 16}, LOGITS),
    "phi": ("PhiForCausalLM", COMMON, LOGITS),
    "phi3": ("Phi3ForCausalLM", {**GROUPED, "pad_token_id": 0}, LOGITS),
    "olmo2": ("Olmo2ForCausalLM", {**GROUPED, "pad_token_id": 0}, LOGITS),
    "granite": ("GraniteForCausalLM", GROUPED, LOGITS),
    "stablelm": ("StableLmForCausalLM", GROUPED, LOGITS),
    "starcoder2": ("Starcoder2ForCausalLM", GROUPED, LOGITS),
    "cohere": ("CohereForCausalLM", GROUPED, LOGITS),
    "smollm3": ("SmolLM3ForCausalLM", {**GROUPED, "pad_token_id": 0}, LOGITS),
    "mixtral": ("MixtralForCausalLM", _MOE, LOGITS),
    "mamba": (
        "MambaForCausalLM",
        {"vocab_size": WORDS, "hidden_size": 32, "num_hidden_layers": 2},
        LOGITS,
    ),
}
"""Of tokens and a mask, without a cache."""

_T5 = {
    "vocab_size": WORDS,
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 128,
    "num_layers": 2,
    "num_heads": 4,
}
_BOTH = ("input_ids", "attention_mask", "decoder_input_ids")

_TRANSLATORS: dict[str, tuple[str, dict[str, Any], str]] = {
    "t5": ("T5ForConditionalGeneration", _T5, LOGITS),
    "bart": ("BartForConditionalGeneration", SEQ2SEQ, LOGITS),
    "marian": ("MarianMTModel", {**SEQ2SEQ, "pad_token_id": 0}, LOGITS),
    "pegasus": ("PegasusForConditionalGeneration", SEQ2SEQ, LOGITS),
}
"""Of tokens, a mask and the tokens said so far."""


def _cached_llama() -> Any:
    """A decoder with its cache of keys and values as inputs and outputs, one token at a time."""
    import torch
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

    class Cached(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = LlamaForCausalLM(LlamaConfig(**GROUPED))

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
    return (Given("tokens", ("batch", 1), WORDS), *past)


def architectures() -> list[Architecture]:
    """All of them."""
    rows: list[Row] = []
    for names, kind, table, inputs in (
        (_TEXT, "encoder", _ENCODERS, (TOKENS, MASK)),
        (_TEXT, "decoder", _DECODERS, (TOKENS, MASK)),
        (_BOTH, "translation", _TRANSLATORS, (TOKENS, MASK, TARGET)),
    ):
        for name, (model, sizes, output) in table.items():
            rows.append((name, kind, partial(module_of, model, sizes, names, output), inputs))
    return of([*rows, ("llama_cached", "decoder", _cached_llama, _cache_inputs())])
