"""The weights of a plan: a constant is stored once for each packing that its readers ask for."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.assembly.implementation import Pack
from wpk.dtypes import from_numpy
from wpk.file_arrays import in_file
from wpk.lowering.program import Operator
from wpk.plan import Weight, array_digest


class WeightStore:
    """Constants as steps read them, stored once for each packing."""

    def __init__(self, constants: Mapping[str, NDArray[Any]]) -> None:
        self.constants = constants
        self.weights: dict[str, Weight] = {}
        self.arrays: dict[str, NDArray[np.generic]] = {}

    def names(self, operator: Operator, packing: str | None, pack: Pack) -> tuple[str, ...]:
        """The operator's inputs; constants as they are stored, the second one packed."""
        return tuple(
            name
            if name not in self.constants
            else self._name(name, None, self.constants[name])
            if index != 1 or packing is None
            else self._name(name, packing, pack(self.constants[name]))
            for index, name in enumerate(operator.inputs)
        )

    def _name(self, constant: str, packing: str | None, packed: NDArray[Any]) -> str:
        """Name of the stored weight for a constant in a packing, stored on first use."""
        packed = np.ascontiguousarray(packed).reshape(packed.shape or (1,))
        base = constant if packing is None else f"{constant}|{packing}"
        for name in (base, *(f"{base}|{i}" for i in range(2, len(self.weights) + 3))):
            known = self.weights.get(name)
            if known is None:
                return self._add(name, constant, packing, packed)
            if known.digest == array_digest(packed) and known.shape == packed.shape:
                return name
        raise AssertionError("one name more than there are weights is always free")

    def _add(self, name: str, constant: str, packing: str | None, packed: NDArray[Any]) -> str:
        dtype = from_numpy(packed.dtype)
        if dtype is None:
            raise TypeError(f"packing {packing} of {constant} gave element type {packed.dtype}")
        self.weights[name] = Weight(
            name, constant, packing, dtype, packed.shape, array_digest(packed)
        )
        self.arrays[name] = in_file(packed)
        return name

    def bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())
