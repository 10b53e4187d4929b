"""Faults that show in networks as exporters write them."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass

FAULTS = (
    BrokenPass(
        "a body reads rows as columns",
        "channels-last",
        "layout.channels_last",
        'perms = {"perm": to_first(len(inner.shape))}',
        'perms = {"perm": [0, 3, 2, 1]}',
        "tv_resnet18.script",
    ),
    BrokenPass(
        "the mean of a plane becomes its maximum",
        "global-pooling",
        "recognise.global_pooling",
        '"ReduceMean": "GlobalAveragePool"',
        '"ReduceMean": "GlobalMaxPool"',
        "tv_mobilenet_v2.dynamo",
    ),
    BrokenPass(
        "queries, keys and values get each other's part",
        "join-siblings",
        "products.join_siblings",
        "outputs = [one.output for one in members]",
        "outputs = [one.output for one in members][::-1]",
        "hf_distilbert.dynamo",
    ),
    BrokenPass(
        "queries' bias is not scaled",
        "scale-through-bias",
        "fold.constants_into_weights",
        "offsets * factors",
        "offsets",
        "hf_distilbert.dynamo",
    ),
)
