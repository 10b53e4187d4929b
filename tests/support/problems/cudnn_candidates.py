"""Candidates of cuDNN that tests on a GPU execute."""

from __future__ import annotations

from wpk.libraries.cudnn import Cudnn, CudnnCandidate
from wpk.problems import Problem


def make_ready(
    library: Cudnn, problem: Problem, most: int, tried: int | None = None
) -> tuple[list[CudnnCandidate], list[str]]:
    """The first proposals that can run, at most so many, of so many that are tried; and why others cannot."""
    offer = library.offer(problem)
    ready: list[CudnnCandidate] = []
    reasons = list(offer.refusals)
    for candidate in offer.candidates[:tried]:
        reason = candidate.prepare()
        if reason is None:
            ready.append(candidate)
        else:
            reasons.append(reason)
        if len(ready) == most:
            break
    return ready, reasons
