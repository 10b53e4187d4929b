"""What a plan is checked on, how thoroughly, and what its outputs are held to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from wpk.checks.float64_nodes import Array
from wpk.did_you_mean import choices_words
from wpk.engine import TakesInputs, bind_inputs, random_inputs, require_values
from wpk.errors import EngineError
from wpk.plan import CheckMode, Port

SEEDS, QUICK_SEEDS = 3, 1
"""How many drawn inputs a whole engine is compared on."""


@dataclass(frozen=True)
class Sample:
    """Inputs of the model.

    Attributes:
        name: What reports call them.
        arrays: The arrays by input.
    """

    name: str
    arrays: Mapping[str, Array]


@dataclass(frozen=True)
class SampleRound:
    """Samples of the same sizes.

    Attributes:
        dims: Sizes of the free dimensions.
        samples: At least one. Operators alone are checked on the first, the whole engine on all.
        given: Whether a person gave them; else they are drawn.
    """

    dims: Mapping[str, int]
    samples: tuple[Sample, ...]
    given: bool = False


@dataclass(frozen=True)
class Tolerance:
    """What a person allows an element of an output to differ by: atol + rtol |expected|."""

    rtol: float
    atol: float


@dataclass(frozen=True)
class Scope:
    """How thoroughly a plan is checked.

    Attributes:
        quick: Whether to leave out all sizes but the tuned one, and second evaluators of graph
            passes.
        seeds: Drawn inputs for the whole engine at the tuned sizes, at least 1.
        given: Inputs that a person gave, in addition to those drawn.
        tolerance: Decides the comparison of whole engines in place of the limits of the precision.
    """

    quick: bool = False
    seeds: int = SEEDS
    given: Sequence[Mapping[str, Array]] = ()
    tolerance: Tolerance | None = None

    @property
    def mode(self) -> CheckMode:
        """The words by which a plan records this scope."""
        return CheckMode.QUICK if self.quick else CheckMode.ON


def scope_of(mode: CheckMode | str, given: Sequence[Mapping[str, Array]] = ()) -> Scope | None:
    """Return what checks before writing a plan look at; None where nothing is checked.

    Args:
        mode: ``on``, ``quick`` or ``off``.
        given: Inputs to check on beside drawn ones.

    Raises:
        EngineError: There is no such mode, or inputs are given that nothing would look at.
    """
    known = [each.value for each in CheckMode]
    if mode not in known:
        raise EngineError(
            f"check is {mode!r}, expected one of {', '.join(known)}",
            fix=choices_words(str(mode), known),
        )
    if mode == CheckMode.QUICK:
        return Scope(quick=True, seeds=QUICK_SEEDS, given=given)
    if mode == CheckMode.ON:
        return Scope(given=given)
    if given:
        raise EngineError(
            "inputs are given to check on, and nothing is checked", fix="leave out one of the two"
        )
    return None


def require_inputs(given: Sequence[Mapping[str, Array]], ports: Sequence[Port]) -> None:
    """Check inputs that a person gave against what the model takes.

    Raises:
        EngineError: Names, types, shapes or numbers do not fit.
    """
    for arrays in given:
        bind_inputs(ports, arrays)
        require_values(ports, arrays)


def rounds(
    plan: TakesInputs, scope: Scope, free_sizes: Sequence[Mapping[str, int]]
) -> Iterator[SampleRound]:
    """Yield what a plan is checked on, in order: drawn inputs at each size, then those given.

    Args:
        plan: Whose inputs.
        scope: How thoroughly.
        free_sizes: Sizes of its free dimensions, beside the tuned ones.
    """
    for dims in _sizes(plan, scope, free_sizes):
        at = "".join(f", {name} {size}" for name, size in dims.items())
        count = scope.seeds if dims == plan.free else 1
        yield SampleRound(
            dims,
            tuple(
                Sample(f"seed {seed}{at}", random_inputs(plan, seed, dims)) for seed in range(count)
            ),
        )
    for number, given in enumerate(scope.given, 1):
        arrays, dims = bind_inputs(plan.inputs, given)
        yield SampleRound(dims, (Sample(f"given inputs {number}", arrays),), given=True)


def _sizes(
    plan: TakesInputs, scope: Scope, free_sizes: Sequence[Mapping[str, int]]
) -> Sequence[Mapping[str, int]]:
    if scope.quick or not plan.free:
        return [plan.free]
    return [plan.free, *(dims for dims in free_sizes if dims != plan.free)]
