"""Constants as steps of plans read them: brought into each form once for all plans of a model, and kept in files."""

import os
from collections.abc import Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.assembly.implementation import Implementation
from wpk.file_arrays import in_file
from wpk.lowering.program import Operator
from wpk.plan import array_digest

_MOST_WORKERS = 8
"""Threads that already use all of a machine's memory bandwidth; each holds one constant in memory."""

_PACKED_PLACE = 1
"""The input that a candidate may want in a form of its own."""


@dataclass(frozen=True)
class PackedConstant:
    """A constant as a step reads it.

    Attributes:
        constant: Its name in the program.
        packing: Name of its form; None where it is as it is.
        array: Its elements.
        digest: SHA-256 of their bytes.
    """

    constant: str
    packing: str | None
    array: NDArray[Any]
    digest: str


class PackedConstants:
    """The constants of a program in all forms that its plans have asked for."""

    def __init__(self, constants: Mapping[str, NDArray[Any]]) -> None:
        """Begin with none.

        Args:
            constants: As the program has them, by name.
        """
        self._constants = constants
        self._known: dict[Hashable, PackedConstant] = {}

    def prepare(self, steps: Iterable[tuple[Operator, Implementation]]) -> None:
        """Pack what these operators read by these implementations, on all cores."""
        missing: dict[Hashable, tuple[Operator, int, Implementation]] = {}
        for operator, implementation in steps:
            for place, name in enumerate(operator.inputs):
                key = _key(operator, place, implementation)
                if name in self._constants and key not in self._known:
                    missing[key] = operator, place, implementation
        workers = min(_MOST_WORKERS, len(os.sched_getaffinity(0)))
        with ThreadPoolExecutor(workers, "wpk-packing") as pool:
            found = pool.map(lambda each: self._pack(*each), missing.values())
            self._known.update(zip(missing, found, strict=True))

    def read_by(
        self, operator: Operator, implementation: Implementation
    ) -> list[str | PackedConstant]:
        """An operator's inputs in order: names of values, and constants as the implementation reads them."""
        self.prepare([(operator, implementation)])
        return [
            self._known[_key(operator, place, implementation)] if name in self._constants else name
            for place, name in enumerate(operator.inputs)
        ]

    def _pack(
        self, operator: Operator, place: int, implementation: Implementation
    ) -> PackedConstant:
        name = operator.inputs[place]
        array, packing = self._constants[name], _packing(place, implementation)
        packed = array if packing is None else implementation.pack(array)
        packed = np.ascontiguousarray(packed).reshape(packed.shape or (1,))
        return PackedConstant(name, packing, in_file(packed), array_digest(packed))


def _packing(place: int, implementation: Implementation) -> str | None:
    return implementation.packing if place == _PACKED_PLACE else None


def _key(operator: Operator, place: int, implementation: Implementation) -> Hashable:
    """Equal for what has equal bytes: a packing's name and the problem say what becomes of a constant."""
    name, packing = operator.inputs[place], _packing(place, implementation)
    if packing is None:
        return name
    return name, packing, implementation.candidate.family, operator.problem
