"""Registers that machine code of sm_90a touches while products of warpgroups still use them.

A product adds to its accumulators, and reads A where that lies in registers, after it was started, until
it has been waited for (``WARPGROUP.DEPBAR``). ptxas does not always know: around a loop it has given A's
registers to others. Neither the emulator nor a comparison of numbers is sure to notice, since products
are mostly quicker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

A_REGISTERS = 4

_OLD = 8  # groups: more are not told apart

_LABEL = re.compile(r"^\s*(\.L_x_\d+):")
_LINE = re.compile(r"/\*[0-9a-f]+\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_TARGET = re.compile(r"`\((\.L_x_\d+)\)")
_REGISTER = re.compile(r"R(\d+)(?:\.\w+)*$")
_ANY_REGISTER = re.compile(r"(?<![A-Z])R(\d+)")


@dataclass(frozen=True)
class Instruction:
    """One line of a listing.

    Attributes:
        text: All of it.
        opcode: With its parts, ``HGMMA.64x128x16.F32``.
        operands: The result first, if there is one.
        targets: Labels that it may go to.
        leaves: Whether it never goes on to the next instruction.
    """

    text: str
    opcode: str
    operands: tuple[str, ...]
    targets: tuple[str, ...]
    leaves: bool

    @property
    def written(self) -> range:
        """Numbers of the registers that it writes."""
        match = _REGISTER.match(self.operands[0]) if self.operands else None
        return range(0) if match is None else range(int(match[1]), int(match[1]) + self._width)

    @property
    def touched(self) -> set[int]:
        """Numbers of the registers that it writes, and of those that its operands begin with."""
        named = {int(number) for each in self.operands for number in _ANY_REGISTER.findall(each)}
        return named | set(self.written)

    @property
    def is_product(self) -> bool:
        """Whether it starts a product; those on the same accumulators follow each other."""
        return self.opcode.startswith("HGMMA")

    @property
    def read_later(self) -> range:
        """Of a product with A in registers: A's."""
        match = _REGISTER.match(self.operands[1]) if self.is_product else None
        first = 0 if match is None else int(match[1])
        return range(0) if match is None else range(first, first + A_REGISTERS)

    @property
    def commits(self) -> bool:
        """Of a product: whether a group of them ends with it."""
        return self.is_product and self.operands[-1] == "gsb0"

    @property
    def leaves_running(self) -> int | None:
        """How many groups of products may run behind it; None where it waits for none."""
        if not self.opcode.startswith("WARPGROUP.DEPBAR"):
            return None
        return int(self.operands[-1], 16)

    @property
    def _width(self) -> int:
        name, *parts = self.opcode.split(".")
        if name == "HGMMA":
            return int(parts[0].split("x")[1]) // 2
        if name == "LDSM":
            return int(parts[-1]) if parts[-1].isdigit() else 1
        if "128" in parts:
            return 4
        wide = "64" in parts or "WIDE" in parts or (name == "CS2R" and "32" not in parts)
        return 2 if wide else 1


@dataclass
class _Block:
    instructions: list[Instruction] = field(default_factory=list)
    successors: list[str] = field(default_factory=list)


_Groups = Mapping[int, int]
"""By register, how many groups have ended since the youngest product that uses it, its own included."""


@dataclass(frozen=True)
class _InFlight:
    """Registers that products may still read, and those that they may still add to."""

    read: _Groups = field(default_factory=dict)
    added: _Groups = field(default_factory=dict)

    def __or__(self, other: _InFlight) -> _InFlight:
        return _InFlight(_youngest(self.read, other.read), _youngest(self.added, other.added))

    def after(self, each: Instruction) -> _InFlight:
        if (groups := each.leaves_running) is not None:
            return self._kept(lambda age: age if age <= groups else None)
        started = dict.fromkeys(each.written if each.is_product else (), 0)
        state = self | _InFlight(dict.fromkeys(each.read_later, 0), started)
        return state._kept(lambda age: min(age + 1, _OLD)) if each.commits else state

    def is_hurt_by(self, each: Instruction) -> bool:
        touched = set() if each.is_product else each.touched
        return bool(self.read.keys() & set(each.written) or self.added.keys() & touched)

    def _kept(self, new_age: Callable[[int], int | None]) -> _InFlight:
        def kept(groups: _Groups) -> _Groups:
            aged = {register: new_age(age) for register, age in groups.items()}
            return {register: age for register, age in aged.items() if age is not None}

        return _InFlight(kept(self.read), kept(self.added))


def _youngest(one: _Groups, other: _Groups) -> _Groups:
    """Where ways meet, the one by which fewer groups have ended."""
    return {
        register: min(one.get(register, _OLD), other.get(register, _OLD))
        for register in one.keys() | other.keys()
    }


def touched_in_flight(listing: str) -> list[str]:
    """Lines that may write a register of A, or touch an accumulator, of products that run."""
    blocks = _blocks(listing)
    entering = {name: _InFlight() for name in blocks}
    waiting, found = list(blocks), dict[str, None]()
    while waiting:
        name = waiting.pop()
        state = entering[name]
        for each in blocks[name].instructions:
            if state.is_hurt_by(each):
                found[each.text] = None
            state = state.after(each)
        for successor in blocks[name].successors:
            if entering[successor] | state != entering[successor]:
                entering[successor] |= state
                waiting.append(successor)
    return list(found)


def products_from_registers(listing: str) -> int:
    """How many products have A in registers."""
    return sum(bool(each.read_later) for each in instructions(listing))


def instructions(listing: str) -> list[Instruction]:
    """All of them, in the order of the text."""
    return [each for line in listing.splitlines() if (each := _instruction(line))]


def _blocks(listing: str) -> dict[str, _Block]:
    """Parts between labels and branches, by label."""
    name = ""
    blocks = {name: _Block()}

    def begin(following: str, *, falls_through: bool) -> str:
        if falls_through:
            blocks[name].successors.append(following)
        blocks[following] = _Block()
        return following

    for line in listing.splitlines():
        if match := _LABEL.match(line):
            name = begin(match[1], falls_through=True)
        elif each := _instruction(line):
            blocks[name].instructions.append(each)
            blocks[name].successors += each.targets
            if each.targets or each.leaves:
                name = begin(f"after {each.text}", falls_through=not each.leaves)
    return blocks


def _instruction(line: str) -> Instruction | None:
    match = _LINE.search(line)
    if match is None:
        return None
    guard, opcode, rest = match.groups()
    operands = tuple(part.strip() for part in rest.split(","))
    leaves = guard is None and opcode in {"BRA", "EXIT"}
    # BSSY names where ways meet again; it goes nowhere.
    targets = () if opcode.startswith("BSSY") else tuple(_TARGET.findall(rest))
    return Instruction(line.strip(), opcode, operands, targets, leaves)
