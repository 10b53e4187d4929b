"""Networks that none of the libraries has: U-Net, EDSR, and DLRM, as their papers say."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from exporters.architecture import Architecture, Given

from zoo.network import ZooNetwork


def _unet() -> Any:
    """Ronneberger et al. 2015, with padded convolutions and batch normalisations; 64 to 1024 channels."""
    import torch
    from torch import nn

    def twice(given: int, made: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for channels in (given, made):
            convolution = nn.Conv2d(channels, made, 3, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(made), nn.ReLU()]
        return nn.Sequential(*layers)

    widths = (64, 128, 256, 512, 1024)

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down = nn.ModuleList(map(twice, (3, *widths[:-1]), widths))
            steps = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
            self.up = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in steps)
            self.joined = nn.ModuleList(twice(a, b) for a, b in steps)
            self.classes = nn.Conv2d(widths[0], 2, 1)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            x, skipped = self.down[0](image), []
            for block in self.down[1:]:
                skipped.append(x)
                x = block(nn.functional.max_pool2d(x, 2))
            for up, block in zip(self.up, self.joined, strict=True):
                x = block(torch.cat([skipped.pop(), up(x)], 1))
            classes: torch.Tensor = self.classes(x)
            return classes

    return UNet()


def _edsr() -> Any:
    """Lim et al. 2017, the baseline: 16 blocks of 64 channels; images become twice as wide and as high."""
    import torch
    from torch import nn

    width, blocks, scale = 64, 16, 2

    def convolution(given: int, made: int) -> nn.Conv2d:
        return nn.Conv2d(given, made, 3, padding=1)

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(
                convolution(width, width), nn.ReLU(), convolution(width, width)
            )

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found: torch.Tensor = x + self.body(x)
            return found

    class Edsr(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = convolution(3, width)
            self.body = nn.Sequential(*(Block() for _ in range(blocks)), convolution(width, width))
            self.tail = nn.Sequential(
                convolution(width, width * scale**2), nn.PixelShuffle(scale), convolution(width, 3)
            )

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            x = self.head(image)
            found: torch.Tensor = self.tail(x + self.body(x))
            return found

    return Edsr()


_NUMBERS, _TABLES, _ROWS, _WIDTH = 13, 26, 20000, 128


def _dlrm() -> Any:
    """Naumov et al. 2019: numbers and categories of a click, and the products of their vectors."""
    import torch
    from torch import nn

    def perceptron(*widths: int) -> nn.Sequential:
        layers = pairwise(widths)
        return nn.Sequential(*(m for a, b in layers for m in (nn.Linear(a, b), nn.ReLU())))

    vectors = _TABLES + 1
    pairs = [(i, j) for i in range(vectors) for j in range(i)]

    class Dlrm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bottom = perceptron(_NUMBERS, 512, 256, _WIDTH)
            self.tables = nn.ModuleList(nn.Embedding(_ROWS, _WIDTH) for _ in range(_TABLES))
            self.top = perceptron(_WIDTH + len(pairs), 1024, 1024, 512, 256)
            self.click = nn.Linear(256, 1)
            rows, columns = map(torch.tensor, zip(*pairs, strict=True))
            self.register_buffer("places", rows * vectors + columns)

        def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
            dense = self.bottom(numbers)
            found = [table(categories[:, n]) for n, table in enumerate(self.tables)]
            joined = torch.stack([dense, *found], 1)
            products = (joined @ joined.transpose(1, 2)).flatten(1)[:, self.places]
            chance: torch.Tensor = self.click(self.top(torch.cat([dense, products], 1))).sigmoid()
            return chance

    return Dlrm()


def networks() -> list[ZooNetwork]:
    """All of them."""
    scene, small = (Given("image", ("batch", 3, side, side)) for side in (256, 128))
    clicks = (Given("numbers", ("batch", _NUMBERS)), Given("categories", ("batch", _TABLES), _ROWS))
    return [
        ZooNetwork("unet", Architecture("unet", "torch", "segmentation", _unet, (scene,)), 16),
        ZooNetwork(
            "edsr",
            Architecture("edsr_baseline_x2", "torch", "super-resolution", _edsr, (small,)),
            16,
        ),
        ZooNetwork("dlrm", Architecture("dlrm", "torch", "recommendation", _dlrm, clicks)),
    ]
