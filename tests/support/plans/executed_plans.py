"""Small plans as C++ executes them, written byte by byte as docs/spec_format.md says, without lowering a model.

Their kernels are those of ``plugins/tests/recording_cuda``: the machine code is a letter for each parameter, and a
kernel adds its inputs.
"""

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from wpk.plan.container import member_of, write_container

BATCH = b"\x01" + struct.pack("<q", 0)
"""The size of the only free dimension."""

LARGEST = 2**62
"""What that dimension may be at most."""

WIDTH = 4
"""Elements of a row."""

MOST_ROWS = 8
"""Rows of the weight."""

_MAPPED = 16
"""Added to the number of a kernel that is given a tensor map; there are fewer inputs."""


def u32(number: int) -> bytes:
    """Four bytes."""
    return struct.pack("<I", number)


def text(words: str) -> bytes:
    """A ``str``."""
    return u32(len(words.encode())) + words.encode()


def listed(entries: Iterable[bytes]) -> bytes:
    """A count and what it counts."""
    entries = list(entries)
    return u32(len(entries)) + b"".join(entries)


def constant(number: int) -> bytes:
    """An expression that is a number."""
    return listed([b"\x00" + struct.pack("<q", number)])


def rows(times: int) -> bytes:
    """An expression: the batch, so many times."""
    return listed([BATCH, b"\x00" + struct.pack("<q", times), b"\x03"])


@dataclass(frozen=True)
class Sum:
    """A step that adds operands: names of values or ``weight``.

    Attributes:
        inputs: What it adds.
        output: Where to.
        predecessors: Numbers of the steps that it follows.
        library: Set if a library computes it.
        recipe: What the library makes its implementation of.
        mapped_rows: Rows of a tensor map over the first input, which the kernel is given and does not read; 0 for none.
    """

    inputs: tuple[str, ...]
    output: str
    predecessors: tuple[int, ...] = ()
    library: str = ""
    recipe: bytes = b""
    mapped_rows: int = 0

    @property
    def kernel(self) -> int:
        """A number for what the kernel is given."""
        return len(self.inputs) + _MAPPED * bool(self.mapped_rows)


@dataclass(frozen=True)
class ExecutedPlan:
    """A plan over values of ``[batch, 4]`` fp32, each alone in its buffer, but for ``together``.

    Attributes:
        steps: What it computes.
        inputs: Names of its inputs.
        outputs: Names of its outputs.
        together: Values that lie one behind the other in one buffer.
    """

    steps: tuple[Sum, ...]
    inputs: tuple[str, ...] = ("x",)
    outputs: tuple[str, ...] = ("y",)
    together: tuple[str, ...] = ()
    weight: np.ndarray = field(
        default_factory=lambda: np.arange(MOST_ROWS * WIDTH, dtype=np.float32) + 1
    )

    def members(self) -> dict[str, bytes]:
        """All members of the file."""
        kernels = sorted({step.kernel for step in self.steps})
        header = b'{"weight":{"dtype":"F32","shape":[32],"data_offsets":[0,128]}}'
        header += b" " * (-(8 + len(header)) % 64)
        weights = struct.pack("<Q", len(header)) + header + self.weight.tobytes()
        begin = len(weights) - self.weight.nbytes
        members = {
            "plan.json": b"{}",
            "plan.spec": sealed(self._body(kernels, begin)),
            "weights.safetensors": weights,
            "plan.sha256": b"-",
        }
        for count in kernels:
            map_letter = "m" * (count // _MAPPED)
            code = image("p" * (count % _MAPPED) + "i" + map_letter + "p")
            members[f"kernels/{_digest(count)}.cubin"] = code
        return members

    def write(self, path: Path) -> Path:
        """Write the file."""
        write_members(path, self.members())
        return path

    def _body(self, kernels: Sequence[int], weights_begin: int) -> bytes:
        names = [*self.inputs, *(step.output for step in self.steps)]
        alone = [name for name in names if name not in self.together]
        buffers = [rows(16)] * len(alone)
        if self.together:  # at a size at which offsets do not depend on the batch
            buffers.append(constant(16 * MOST_ROWS * len(self.together)))
        values = []
        for name in names:
            number, offset = len(alone), 0
            if name in self.together:
                offset = 16 * MOST_ROWS * self.together.index(name)
            else:
                number = alone.index(name)
            place = b"\x01" + u32(number) + struct.pack("<q", offset)
            shape = listed([listed([BATCH]), constant(WIDTH)])
            strides = listed([struct.pack("<q", WIDTH), struct.pack("<q", 1)])
            values.append(text(name) + place + shape + strides + struct.pack("<q", 0))
        port = listed([listed([BATCH]), constant(WIDTH)])
        return b"".join(
            (
                *(text("1.0"), text("a test's"), text("sm_90a")),
                listed([text("batch") + struct.pack("<qqq", 2, 1, LARGEST)]),
                listed([_kernel(count) for count in kernels]),
                listed(buffers),
                listed(values),
                listed([text("weight") + struct.pack("<QQ", weights_begin, 128)]),
                listed([u32(names.index(name)) + port for name in self.inputs]),
                listed([u32(names.index(name)) + port for name in self.outputs]),
                listed([_step(n, step, names, kernels) for n, step in enumerate(self.steps)]),
            )
        )


def write_members(path: Path, members: Mapping[str, bytes]) -> None:
    """Write members as plans hold them, whatever they are."""
    write_container(path, {name: member_of(data) for name, data in members.items()})


def sealed(body: bytes, kind: int = 2) -> bytes:
    """A spec: header and body."""
    return struct.pack("<4sHHQI", b"WPKS", 3, kind, len(body), zlib.crc32(body)) + body


def image(parameters: str) -> bytes:
    """Machine code for ``plugins/tests/recording_cuda``: an ELF header, an empty section, a letter a parameter."""
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64, 0, 64, 0, 0, 64, 1, 0)
    return header + bytes(64) + parameters.encode() + b"\0"


def _digest(count: int) -> str:
    return f"{count:064x}"


def _kernel(count: int) -> bytes:
    return text(_digest(count)) + text(f"add_{count}") + text("sm_90a") + u32(0)


def _step(number: int, step: Sum, names: Sequence[str], kernels: Sequence[int]) -> bytes:
    operands = [
        b"\x01" + u32(0) if name == "weight" else b"\x00" + u32(names.index(name))
        for name in step.inputs
    ]
    head = text(f"add_{number}") + listed(operands) + listed([u32(names.index(step.output))])
    head += listed([u32(other) for other in step.predecessors])
    if step.library:
        call = text(step.library) + text("9.9") + struct.pack("<Q", 0)
        inputs = listed([u32(n) for n in range(len(operands))])
        return head + b"\x01" + call + inputs + u32(len(step.recipe)) + step.recipe
    arguments = [b"\x00" + u32(i) for i in range(len(operands))]
    arguments += [b"\x01" + rows(WIDTH)]
    if step.mapped_rows:
        shape = listed([constant(WIDTH), constant(step.mapped_rows)]) + listed([constant(16)])
        box = listed([u32(WIDTH), u32(1)])
        arguments += [b"\x02" + u32(0) + u32(4) + shape + box + u32(0) + bytes(2)]
    arguments += [b"\x03" + u32(0)]
    launch = u32(kernels.index(step.kernel)) + constant(number + 1) + constant(1) * 2
    launch += struct.pack("<6I", 32, 1, 1, 1, 1, 1) + u32(0) + u32(1) + listed(arguments)
    return head + b"\x00" + listed([launch])


BRANCHES = ExecutedPlan(
    (
        Sum(("x", "weight"), "a"),
        Sum(("a", "weight"), "b", (0,)),
        Sum(("a", "a"), "c", (0,)),
        Sum(("b", "c"), "y", (1, 2)),
    )
)
"""``y = (x + w) + w + (x + w) + (x + w)``, in two branches."""


def branches_by_numpy(x: np.ndarray, plan: ExecutedPlan = BRANCHES) -> np.ndarray:
    """What `BRANCHES` gives."""
    weight = plan.weight[: x.size].reshape(x.shape)
    a = x + weight
    return (a + weight) + (a + a)
