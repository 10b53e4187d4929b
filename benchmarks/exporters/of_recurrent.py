"""Recurrent networks and recommendation models, as people write them in torch."""

from __future__ import annotations

from typing import Any

from exporters.architecture import Architecture, Given

_WORDS = 97
_TOKENS = (Given("tokens", ("batch", "sequence"), _WORDS),)
_FRAMES = (Given("frames", ("batch", "sequence", 40)),)
_SPECTRUM = (Given("spectrum", ("batch", 1, 40, 48)),)
_LINE = (Given("image", ("batch", 1, 32, 64)),)
_PAIR = (Given("tokens", ("batch", "sequence"), _WORDS), Given("said", ("batch", 4), _WORDS))
_CLICKS = (Given("numbers", ("batch", 13)), Given("categories", ("batch", 4), _WORDS))
_BAGS = (Given("tokens", ("batch", 6), _WORDS),)


def _tagger(cell: str, both_ways: bool) -> Any:
    """Tokens to tags through a stack of a recurrent cell."""
    import torch
    from torch import nn

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(_WORDS, 32)
            self.stack = getattr(nn, cell)(32, 32, 2, batch_first=True, bidirectional=both_ways)
            self.head = nn.Linear(64 if both_ways else 32, 9)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.head(self.stack(self.embedding(tokens))[0])

    return Tagger()


def _last_state() -> Any:
    """A classifier on the last state of an LSTM."""
    import torch
    from torch import nn

    class LastState(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stack = nn.LSTM(40, 64, 2, batch_first=True)
            self.head = nn.Linear(64, 9)

        def forward(self, frames: torch.Tensor) -> torch.Tensor:
            _, (hidden, _) = self.stack(frames)
            return self.head(hidden[-1])

    return LastState()


def _deep_speech() -> Any:
    """Convolutions with strides, bidirectional GRUs and a classifier a frame (Amodei et al. 2016)."""
    import torch
    from torch import nn

    class DeepSpeech(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.front = nn.Sequential(
                nn.Conv2d(1, 16, (11, 11), (2, 2), (5, 5)),
                nn.BatchNorm2d(16),
                nn.Hardtanh(0, 20),
                nn.Conv2d(16, 16, (11, 11), (2, 1), (5, 5)),
                nn.BatchNorm2d(16),
                nn.Hardtanh(0, 20),
            )
            self.stack = nn.GRU(160, 64, 2, batch_first=True, bidirectional=True)
            self.norm = nn.BatchNorm1d(128)
            self.head = nn.Linear(128, 29)

        def forward(self, spectrum: torch.Tensor) -> torch.Tensor:
            x = self.front(spectrum).flatten(1, 2).transpose(1, 2)
            x = self.norm(self.stack(x)[0].transpose(1, 2)).transpose(1, 2)
            return torch.log_softmax(self.head(x), -1)

    return DeepSpeech()


def _crnn() -> Any:
    """Convolutions over a line of text, and LSTMs along it (Shi et al. 2015)."""
    import torch
    from torch import nn

    class Crnn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.front = nn.Sequential(
                *(nn.Conv2d(1, 16, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2)),
                *(nn.Conv2d(16, 32, 3, 1, 1), nn.BatchNorm2d(32), nn.ReLU()),
                *(nn.MaxPool2d((2, 1)), nn.Conv2d(32, 32, (8, 2)), nn.ReLU()),
            )
            self.stack = nn.LSTM(32, 48, 2, bidirectional=True)
            self.head = nn.Linear(96, 37)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            columns = self.front(image).squeeze(2).permute(2, 0, 1)
            return self.head(self.stack(columns)[0]).log_softmax(2)

    return Crnn()


def _attending() -> Any:
    """A translation model: an encoder's LSTM, and one that attends to it (Luong et al. 2015)."""
    import torch
    from torch import nn

    class Attending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(_WORDS, 32)
            self.encoder = nn.LSTM(32, 32, batch_first=True)
            self.decoder = nn.LSTM(32, 32, batch_first=True)
            self.mix = nn.Linear(64, 32)
            self.head = nn.Linear(32, _WORDS)

        def forward(self, tokens: torch.Tensor, said: torch.Tensor) -> torch.Tensor:
            memory, state = self.encoder(self.embedding(tokens))
            asked, _ = self.decoder(self.embedding(said), state)
            weights = torch.softmax(asked @ memory.transpose(1, 2), -1)
            return self.head(torch.tanh(self.mix(torch.cat([asked, weights @ memory], -1))))

    return Attending()


def _dlrm() -> Any:
    """Numbers and categories, and the products of their vectors (Naumov et al. 2019)."""
    import torch
    from torch import nn

    class Dlrm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bottom = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
            self.tables = nn.ModuleList(nn.Embedding(_WORDS, 16) for _ in range(4))
            self.top = nn.Sequential(nn.Linear(26, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())
            self.register_buffer("rows", torch.tensor([i for i in range(5) for _ in range(i)]))
            self.register_buffer("columns", torch.tensor([j for i in range(5) for j in range(i)]))

        def forward(self, numbers: torch.Tensor, categories: torch.Tensor) -> torch.Tensor:
            dense = self.bottom(numbers)
            found = [table(categories[:, n]) for n, table in enumerate(self.tables)]
            vectors = torch.stack([dense, *found], 1)
            products = vectors @ vectors.transpose(1, 2)
            return self.top(torch.cat([dense, products[:, self.rows, self.columns]], 1))

    return Dlrm()


def _bag() -> Any:
    """Sums of embeddings, and a classifier."""
    from torch import nn

    return nn.Sequential(nn.EmbeddingBag(_WORDS, 32, mode="mean"), nn.Linear(32, 5))


def architectures() -> list[Architecture]:
    """All of them."""
    rows: list[tuple[str, str, Any, tuple[Given, ...]]] = [
        ("lstm_tagger", "recurrent", lambda: _tagger("LSTM", False), _TOKENS),
        ("bilstm_tagger", "recurrent", lambda: _tagger("LSTM", True), _TOKENS),
        ("gru_tagger", "recurrent", lambda: _tagger("GRU", False), _TOKENS),
        ("bigru_tagger", "recurrent", lambda: _tagger("GRU", True), _TOKENS),
        ("rnn_tagger", "recurrent", lambda: _tagger("RNN", False), _TOKENS),
        ("lstm_last", "recurrent", _last_state, _FRAMES),
        ("deep_speech", "recurrent", _deep_speech, _SPECTRUM),
        ("crnn", "recurrent", _crnn, _LINE),
        ("attending", "recurrent", _attending, _PAIR),
        ("dlrm", "recommendation", _dlrm, _CLICKS),
        ("bag", "recommendation", _bag, _BAGS),
    ]
    return [Architecture(f"rnn_{name}", "torch", *rest) for name, *rest in rows]
