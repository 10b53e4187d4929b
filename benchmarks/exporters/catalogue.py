"""Which networks there are, which of their graphs are kept, and which more are drawn by a seed."""

from __future__ import annotations

import random

from exporters import (
    of_recurrent,
    of_sklearn,
    of_timm,
    of_torchvision,
    of_transformers,
    of_transformers_senses,
)
from exporters.architecture import EXPORTERS, Architecture, Export

_LIBRARIES = (
    of_torchvision,
    of_transformers,
    of_transformers_senses,
    of_timm,
    of_recurrent,
    of_sklearn,
)

_KEPT = """
    tv_resnet18.script.batch             tv_mobilenet_v3_small.dynamo.batch
    tv_efficientnet_b0.script.fixed      tv_shufflenet_v2_x0_5.dynamo.batch
    tv_shufflenet_v2_x0_5.script.batch   tv_squeezenet1_1.script.batch
    tv_regnet_y_400mf.dynamo.fixed       tv_mnasnet0_5.script.batch
    tv_googlenet.script.batch            tv_vit_small.script.batch
    tv_vit_small.dynamo.batch            tv_swin_small.dynamo.batch
    tv_swin_small.script.fixed           tv_swin_v2_small.script.fixed
    tv_maxvit_small.dynamo.fixed         tv_convnext_small.dynamo.batch
    tv_faster_rcnn.script.fixed          tv_retinanet.script.fixed
    tv_fcos.script.fixed                 tv_mask_rcnn.script.fixed
    tv_ssdlite.script.fixed              tv_fcn_resnet50.dynamo.batch
    tv_deeplabv3_mobilenet_v3_large.script.fixed
    tv_lraspp_mobilenet_v3_large.dynamo.batch
    tv_r3d_18.dynamo.batch               tv_r2plus1d_18.script.fixed
    tv_swin3d_small.dynamo.fixed         tv_mvit_small.dynamo.fixed
    hf_bert.dynamo.batch                 hf_bert.script.batch
    hf_bert_classifier.script.fixed      hf_roberta.dynamo.batch
    hf_distilbert.script.batch           hf_albert.dynamo.fixed
    hf_deberta_v2.script.fixed           hf_t5_encoder.dynamo.batch
    hf_t5.script.fixed                   hf_t5.dynamo.batch
    hf_bart.script.fixed                 hf_gpt2.dynamo.batch
    hf_gpt2.script.fixed                 hf_llama.dynamo.batch
    hf_llama.script.fixed                hf_llama_cached.script.fixed
    hf_qwen3.dynamo.fixed                hf_opt.script.fixed
    hf_bloom.dynamo.fixed                hf_vit.script.batch
    hf_vit_classifier.dynamo.batch       hf_swin.script.fixed
    hf_convnext.dynamo.batch             hf_clip.script.fixed
    hf_clip.dynamo.batch                 hf_clip_embeddings.dynamo.batch
    hf_clip_embeddings.script.batch      hf_whisper.dynamo.batch
    hf_whisper.dynamo.fixed              hf_wav2vec2.script.fixed
    hf_wav2vec2_ctc.dynamo.batch         hf_detr.script.fixed
    hf_yolos.dynamo.fixed                hf_segformer.script.batch
    hf_segformer.dynamo.fixed            timm_test_vit.dynamo.batch
    timm_test_resnet.script.batch        timm_test_convnext.dynamo.fixed
    timm_test_efficientnet.script.batch  timm_test_maxvit.script.fixed
    timm_test_nfnet.dynamo.fixed         timm_mobilevit_xxs.script.fixed
    timm_edgenext_xx_small.dynamo.batch  timm_mixer_s32_224.dynamo.batch
    rnn_lstm_tagger.script.batch         rnn_bilstm_tagger.dynamo.fixed
    rnn_gru_tagger.dynamo.batch          rnn_lstm_last.dynamo.batch
    rnn_deep_speech.script.batch         rnn_deep_speech.dynamo.fixed
    rnn_crnn.script.fixed                rnn_attending.script.fixed
    rnn_dlrm.dynamo.batch                rnn_bag.script.fixed
    sk_perceptron.sklearn.batch          sk_pca.sklearn.batch
    sk_kmeans.sklearn.batch              sk_mixture.sklearn.batch
    sk_pipeline.sklearn.batch            sk_logistic.sklearn.batch
"""


def architectures() -> dict[str, Architecture]:
    """All networks, by name."""
    return {each.name: each for library in _LIBRARIES for each in library.architectures()}


def kept() -> list[Export]:
    """The graphs of the list that is kept."""
    return [Export.parse(word) for word in _KEPT.split()]


def drawn(seed: int) -> list[Export]:
    """All networks that are not in the list, in an order, and by exporters, that a seed draws.

    A free batch and a fixed one, and both exporters of torch, are equally likely. The first one of each
    library comes before all others, so that few graphs are of all libraries.
    """
    generator = random.Random(seed)
    there, known = {each.name for each in kept()}, architectures()
    names = [name for name in known if name not in there]
    generator.shuffle(names)
    firsts = {known[name].family: name for name in reversed(names)}
    names.sort(key=lambda name: name not in firsts.values())
    return [_drawn(name, generator) for name in names]


def _drawn(name: str, generator: random.Random) -> Export:
    exporter, free = generator.choice(EXPORTERS), generator.choice(((), ("batch",)))
    architecture = architectures()[name]
    if architecture.family == "sklearn":
        return Export(name, "sklearn", ("batch",))
    named = any("batch" in each.shape for each in architecture.inputs)
    return Export(name, exporter, free if named else ())
