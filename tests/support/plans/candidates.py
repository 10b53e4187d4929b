"""Candidates by few words: what is made, not how, matters to most tests."""

from __future__ import annotations

from wpk.candidate import Candidate, Configuration, Kind, Maker


def kernel(
    template: str, configuration: Configuration | int = 0, version: int | str = 1
) -> Candidate:
    """A generated kernel; a number is the value of its schedule's only parameter, ``n``."""
    return Candidate(Maker(template, str(version)), _configuration(configuration))


def library_call(
    configuration: Configuration | int = 0, name: str = "cuDNN", version: str = "1"
) -> Candidate:
    """A library's implementation, likewise."""
    return Candidate(Maker(name, version, Kind.LIBRARY), _configuration(configuration))


def _configuration(configuration: Configuration | int) -> Configuration:
    return (("n", configuration),) if isinstance(configuration, int) else configuration
