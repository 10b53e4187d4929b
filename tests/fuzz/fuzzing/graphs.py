"""A case drawn: a model, a precision, and sizes to run it at."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import onnx

from fuzzing.builder import FREE, Builder, Range, Rejected, Value, model_of
from fuzzing.operators.registry import MOVES, SPACES, WIDTHS, feature_map, one_of
from fuzzing.rounding import BF16

FAMILIES = (
    "elementwise", "windows", "movement", "rows", "integers", "formulas", "neighbours", "exports",
    "indices", "recurrences", "strangers",
)  # fmt: skip
for _family in FAMILIES:
    importlib.import_module(f"fuzzing.operators.{_family}")

PRECISIONS = ("fp32", "fp32", "fp32", "tf32", "fp16", "fp16", "bf16", "bf16")
NEWEST_OPSET = 23
"""Graph passes were read against the operators up to here."""

RUN_SIZES = (1, 2, 3, 4, 6, 9, 17, 19)
"""What a free batch is when a plan runs; the largest two are beyond every constant drawn."""

MOST_NODES = 8
TRIES = 40


@dataclass(frozen=True)
class Case:
    """What a plan is made from, and how it is run.

    Attributes:
        model: Valid ONNX.
        precision: Of ``optimize``.
        ranges: What each input is drawn from.
        sizes: Of the free batch, where there is one.
        name: The seed, or the file that it comes from.
    """

    model: onnx.ModelProto
    precision: str
    ranges: dict[str, Range]
    sizes: tuple[int, ...]
    name: str = ""

    def inputs(self, size: int, seed: int) -> dict[str, np.ndarray]:
        """Random values of every input."""
        rng = np.random.default_rng(seed)
        given = {}
        for info in self.model.graph.input:
            kind = info.type.tensor_type
            shape = [d.dim_value if not d.dim_param else size for d in kind.shape.dim]
            dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
            among = self.ranges.get(info.name, Range(0, 2))
            given[info.name] = among.draw(rng, shape, dtype)
        return given

    @property
    def is_free(self) -> bool:
        """Whether an input has a free batch."""
        infos = self.model.graph.input
        return any(d.dim_param for i in infos for d in i.type.tensor_type.shape.dim)


def draw(random: Random, name: str = "") -> Case:
    """Draw a case.

    Args:
        random: Decides everything.
        name: What the case is called.

    Raises:
        Rejected: Nothing came of it.
    """
    builder = Builder(random, _opset(random))
    _draw_input(builder)
    if random.random() < 0.25:
        _draw_input(builder)
    wanted = random.choice([1, 2, 2, 3, 4, 5, 6, 7, MOST_NODES])
    weights = [entry.weight for entry in MOVES]
    for _ in range(TRIES):
        if sum(node.op_type != "Constant" for node in builder.nodes) >= wanted:
            break
        entry = random.choices(MOVES, weights)[0]
        _attempt(builder, entry.draw)
    if not builder.nodes:
        raise Rejected("no node")
    outputs = _outputs(builder)
    model = model_of(builder, {value.name: value for value in outputs})
    if not model.graph.input:
        raise Rejected("no input")
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise Rejected(f"not valid: {error}") from error
    sizes = (random.choice(RUN_SIZES[:-2]), random.choice(RUN_SIZES[-2:]))
    ranges = {info.name: builder.ranges[info.name] for info in model.graph.input}
    case = Case(model, random.choice(PRECISIONS), ranges, sizes, name)
    return case if case.is_free else Case(model, case.precision, ranges, (1,), name)


def _opset(random: Random) -> int:
    if random.random() < 0.3:
        return NEWEST_OPSET
    return random.choice([*range(11, NEWEST_OPSET + 1), 13, 17, 20])


def _draw_input(builder: Builder) -> None:
    """A tensor of a usual shape: maps, rows, vectors, a scalar."""
    draw = builder.random
    free = one_of(builder, [FREE, FREE, FREE, 1, 2, 3])
    kind = draw.random()
    if kind < 0.5:
        value = feature_map(builder, draw.choice([3, 4, 4, 4, 4]))
    elif kind < 0.75:
        value = builder.input([free, draw.choice([4, 7]), one_of(builder, WIDTHS)])
    elif kind < 0.9:
        value = builder.input([free, one_of(builder, WIDTHS)])
    elif kind < 0.94:
        value = builder.input([one_of(builder, WIDTHS)])
    elif kind < 0.96:
        value = builder.input([])
    elif kind < 0.98:
        value = builder.input([free, 2, *(one_of(builder, SPACES) for _ in range(3))])
    else:
        value = builder.input([free, 4], one_of(builder, (np.float16, np.bool_)), Range(0, 2))
    if draw.random() < 0.08 and value.is_float:
        to = one_of(builder, (np.dtype(np.float16), BF16))
        code = onnx.helper.np_dtype_to_tensor_dtype(to)
        _attempt(builder, lambda b: b.add("Cast", [value], to=code))


def _attempt(builder: Builder, move: object) -> None:
    """Add what the move draws, or leave no trace of it."""
    kept = (
        list(builder.values), list(builder.inputs), dict(builder.ranges), list(builder.nodes),
        dict(builder.initializers), set(builder.read),
    )  # fmt: skip
    try:
        move(builder)  # type: ignore[operator]
    except (Rejected, IndexError):
        (
            builder.values, builder.inputs, builder.ranges, builder.nodes,
            builder.initializers, builder.read,
        ) = kept  # fmt: skip


def _outputs(builder: Builder) -> Sequence[Value]:
    """What nothing reads; at times more: inner tensors, inputs."""
    inputs = {value.name for value in builder.inputs}
    made = [v for v in builder.values if v.name not in inputs and v.dtype != BF16]
    loose = [v for v in made if v.name not in builder.read]
    if not made:
        raise Rejected("nothing to output")
    if loose and builder.random.random() < 0.25:
        loose = builder.random.sample(loose, builder.random.randint(1, len(loose)))
    chosen = loose or [made[-1]]
    if builder.random.random() < 0.15:
        chosen = [*chosen, builder.random.choice(made)]
    if builder.random.random() < 0.04:
        chosen = [*chosen, builder.random.choice(builder.inputs)]
    unique = list({value.name: value for value in chosen}.values())
    builder.random.shuffle(unique)
    return unique[:4]
