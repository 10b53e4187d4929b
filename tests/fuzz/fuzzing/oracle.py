"""What a plan's outputs are compared with: the model in ONNX Runtime, and what rounding may do to it.

An element may differ by `FACTOR` times the furthest that a disturbed run came, or that the disturbed
runs scatter by over the whole tensor (few runs may miss an element). Where it differs by more, the
disturbance is made stronger: what then covers it was amplified rounding or a tie, and is undecided.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import onnx
import onnxruntime

from fuzzing.evaluation import Array, Arrays, ModelRunner, Noise, options
from fuzzing.rounding import BF16, FLOATS, ROUNDOFF

RUNS, MORE_RUNS = 5, 24
FACTOR = 6.0
STRONGER = 8.0

LARGEST_FP16 = 6e4

_PRECISIONS = {
    "fp32": Noise(2.0**-24, 2.0**-24),
    "tf32": Noise(2.0**-24, 2.0**-11, 2.0),
    "fp16": Noise(2.0**-11, 2.0**-11, 1.0, FLOATS[1]),
    "bf16": Noise(2.0**-8, 2.0**-8, 1.0, BF16),
}


class Verdict(StrEnum):
    """How a plan's outputs compare."""

    RIGHT = "right"
    WRONG = "wrong"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Finding:
    """A verdict with words."""

    verdict: Verdict
    words: str = ""


class Reference:
    """A model in ONNX Runtime."""

    def __init__(self, model: onnx.ModelProto, precision: str) -> None:
        """Load it.

        Raises:
            Exception: One of ONNX Runtime's: it cannot load the model.
        """
        self.model = model
        self._noise = _PRECISIONS[precision]
        self._narrow = precision == "fp16"
        self._session = onnxruntime.InferenceSession(
            model.SerializeToString(), options(), providers=["CPUExecutionProvider"]
        )
        self._runner = ModelRunner(model)

    def exact(self, inputs: Mapping[str, Array]) -> Arrays:
        """The model's outputs by name."""
        names = [output.name for output in self._session.get_outputs()]
        return dict(zip(names, self._session.run(names, dict(inputs)), strict=True))

    def compare(
        self, inputs: Mapping[str, Array], actual: Mapping[str, Array], seed: int
    ) -> Finding:
        """Compare outputs, at one set of inputs, with the model's."""
        expected = self.exact(inputs)
        differing = _shapes(expected, actual)
        if differing:
            return Finding(Verdict.WRONG, differing)
        if all(np.array_equal(actual[n], right) for n, right in expected.items()):
            return Finding(Verdict.RIGHT)
        rng = np.random.default_rng(seed)
        reach = {name: np.zeros(right.shape) for name, right in expected.items()}
        self._widen(reach, expected, inputs, self._noise, RUNS, rng)
        worst = _worst(expected, actual, reach)
        if worst is None:
            return Finding(Verdict.RIGHT)
        if self._overflows(inputs):
            return Finding(Verdict.UNDECIDED, "beyond what fp16 holds")
        stronger = replace(self._noise, strength=self._noise.strength * STRONGER)
        self._widen(reach, expected, inputs, self._noise, MORE_RUNS, rng)
        if _worst(expected, actual, reach) is None:
            return Finding(Verdict.RIGHT)
        self._widen(reach, expected, inputs, stronger, MORE_RUNS, rng)
        verdict = Verdict.WRONG if _worst(expected, actual, reach) else Verdict.UNDECIDED
        return Finding(verdict, worst)

    def _widen(
        self,
        reach: dict[str, np.ndarray],
        expected: Arrays,
        inputs: Mapping[str, Array],
        noise: Noise,
        runs: int,
        rng: np.random.Generator,
    ) -> None:
        for _ in range(runs):
            known = self._runner.run(inputs, noise, rng)
            for name, right in expected.items():
                reach[name] = np.maximum(reach[name], _distance(known[name], right))

    def _overflows(self, inputs: Mapping[str, Array]) -> bool:
        if not self._narrow:
            return False
        tensors = self._runner.run(inputs).values()
        floats = [np.abs(t.astype(np.float64)) for t in tensors if t.dtype in FLOATS and t.size]
        return any(not np.isfinite(t).all() or t.max() > LARGEST_FP16 for t in floats)


def _shapes(expected: Arrays, actual: Mapping[str, Array]) -> str:
    if set(expected) != set(actual):
        return f"outputs {sorted(actual)}, expected {sorted(expected)}"
    for name, right in expected.items():
        made = actual[name]
        if (made.shape, made.dtype) != (right.shape, right.dtype):
            return f"'{name}' is {made.dtype}{made.shape}, expected {right.dtype}{right.shape}"
    return ""


def _distance(one: Array, other: Array) -> np.ndarray:
    """|one - other|; 0 where both are the same infinity or no number, else infinite."""
    with np.errstate(all="ignore"):
        a, b = one.astype(np.float64), other.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        apart = np.abs(a - b)
        return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def _worst(
    expected: Arrays, actual: Mapping[str, Array], reach: Mapping[str, np.ndarray]
) -> str | None:
    """The element that is furthest beyond what is allowed, in words; None where none is."""
    for name, right in expected.items():
        if right.size == 0:
            continue
        apart = _distance(actual[name], right)
        finite = np.where(np.isfinite(reach[name]), reach[name], 0.0)
        level = float(np.sqrt(np.mean(finite**2)))
        with np.errstate(all="ignore"):
            size = np.abs(np.where(np.isfinite(right.astype(np.float64)), right, 0))
            least = 4 * ROUNDOFF.get(right.dtype, 0.0) * size.astype(np.float64)
            limit = FACTOR * np.maximum(reach[name], level if right.dtype in FLOATS else 0.0)
            beyond = apart - (limit + least)
        if (beyond > 0).any():
            at = np.unravel_index(int(np.argmax(beyond)), right.shape)
            count = int((beyond > 0).sum())
            return (
                f"'{name}'{list(map(int, at))} is {actual[name][at]}, expected {right[at]} "
                f"within {float(limit[at]):.1e}; {count} of {right.size} elements"
            )
    return None
