"""Weights with which every layer of a network that was never trained matters to its outputs."""

from __future__ import annotations

from typing import Any

from exporters.architecture import SIZES, Given

CALIBRATION_BATCH = 8
LEAST_SCALE = 0.1
"""Of a vector's elements: scales of layers begin at 1e-6 in some networks, biases at 0."""

_EQUAL = 1e-4
"""Relative to the largest element: how far elements lie apart that were meant to be equal."""


def wake(module: Any) -> None:
    """Let matrices keep the size of what they multiply, and vectors differ from element to element."""
    import torch

    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() >= 2 and parameter.numel() > parameter.shape[-1]:
                least = max(parameter.shape[0], parameter[0].numel()) ** -0.5
                spread = float(parameter.std())
                if spread <= float(parameter.abs().max()) * _EQUAL:
                    parameter.normal_(0, least)
                elif spread < least:
                    parameter.mul_(least / spread)
            elif (
                float(parameter.abs().max()) > LEAST_SCALE
                and float(parameter.std()) <= float(parameter.abs().max()) * _EQUAL
            ):
                parameter.mul_(torch.empty_like(parameter).uniform_(0.8, 1.2))
            elif float(parameter.abs().max()) <= LEAST_SCALE:
                parameter.normal_(0, LEAST_SCALE)


def calibrate(module: Any, inputs: tuple[Given, ...]) -> None:
    """Give batch normalisations the statistics of random inputs."""
    import torch

    kinds = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)
    norms = [each for each in module.modules() if isinstance(each, kinds)]
    if not norms:
        return
    for norm in norms:
        norm.momentum = None  # a plain mean over the batches
        norm.register_forward_pre_hook(_learn)
    with torch.no_grad():
        for seed in range(2):
            module(*draw(inputs, {**SIZES, "batch": CALIBRATION_BATCH}, seed))
    for norm in norms:
        norm.eval()
        norm._forward_pre_hooks.clear()


def _learn(norm: Any, given: tuple[Any, ...]) -> None:
    """Let a normalisation take statistics, where a channel has more than one value."""
    norm.train(given[0].numel() > given[0].shape[1])


def draw(inputs: tuple[Given, ...], sizes: dict[str, int], seed: int) -> tuple[Any, ...]:
    """Random inputs, as torch has them."""
    import torch

    from exporters.inputs import draw_arrays

    return tuple(map(torch.from_numpy, draw_arrays(inputs, sizes, seed).values()))
