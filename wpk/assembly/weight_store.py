"""The weights of a plan: a constant is stored once for each packing that its readers ask for."""

from typing import Any

from numpy.typing import NDArray

from wpk.assembly.implementation import Implementation
from wpk.assembly.packed_constants import PackedConstant, PackedConstants
from wpk.dtypes import from_numpy
from wpk.lowering.program import Operator
from wpk.plan import Weight


class WeightStore:
    """Constants as steps read them, stored once for each packing."""

    def __init__(self, constants: PackedConstants) -> None:
        self.constants = constants
        self.weights: dict[str, Weight] = {}
        self.arrays: dict[str, NDArray[Any]] = {}

    def names(self, operator: Operator, implementation: Implementation) -> tuple[str, ...]:
        """The operator's inputs; constants as they are stored for the implementation."""
        inputs = self.constants.read_by(operator, implementation)
        return tuple(each if isinstance(each, str) else self._name(each) for each in inputs)

    def _name(self, packed: PackedConstant) -> str:
        """Name of the stored weight, stored on first use."""
        constant, packing = packed.constant, packed.packing
        base = constant if packing is None else f"{constant}|{packing}"
        for name in (base, *(f"{base}|{i}" for i in range(2, len(self.weights) + 3))):
            known = self.weights.get(name)
            if known is None:
                return self._add(name, packed)
            if known.digest == packed.digest and known.shape == packed.array.shape:
                return name
        raise AssertionError("one name more than there are weights is always free")

    def _add(self, name: str, packed: PackedConstant) -> str:
        array, constant, packing = packed.array, packed.constant, packed.packing
        dtype = from_numpy(array.dtype)
        if dtype is None:
            raise TypeError(f"packing {packing} of {constant} gave element type {array.dtype}")
        self.weights[name] = Weight(name, constant, packing, dtype, array.shape, packed.digest)
        self.arrays[name] = array
        return name

    def bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())
