"""Cases of problems that only other forms of a model have: most of what they work on its own form has computed."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain

from wpk.checks import Array
from wpk.lowering.flat_graph import FlatGraph
from wpk.lowering.lowered_model import LoweredModel
from wpk.phases import Phases
from wpk.problems import Problem
from wpk.progress import Progress
from wpk.trial_bench.cases import Case, Cases, ComputedCase
from wpk.trial_bench.host_memory import result_bytes
from wpk.trial_bench.model_cases import ModelCases, compute_cases

_LAST = "_last"
"""What the name of a tensor ends with that holds another, channels last."""


class FormCases(Mapping[Problem, Case]):
    """The cases of a model and of other forms of it, which are computed as they are asked for."""

    def __init__(
        self,
        own: ModelCases,
        forms: Mapping[Problem, LoweredModel],
        seed: int,
        phases: Phases,
    ) -> None:
        """Describe them.

        Args:
            own: Of the model's own form.
            forms: For each problem that this form lacks, a form that has it.
            seed: Of the random inputs, that of ``own``.
            phases: Told where somebody waits.
        """
        self._own, self._seed = own, seed
        wanted: dict[int, list[Problem]] = {}
        for problem, lowered in forms.items():
            wanted.setdefault(id(lowered), []).append(problem)
        self._cases: dict[Problem, Cases] = {}
        for problems in wanted.values():
            lowered = forms[problems[0]]
            compute = partial(self._compute, lowered, problems)
            cases = Cases(problems, compute, result_bytes(lowered.program, problems), phases)
            self._cases |= dict.fromkeys(problems, cases)

    def __getitem__(self, problem: Problem) -> Case:
        """The case of a problem."""
        return self._cases.get(problem, self._own)[problem]

    def __iter__(self) -> Iterator[Problem]:
        """All problems."""
        return chain(self._own, self._cases)

    def __len__(self) -> int:
        """Number of problems."""
        return len(self._own) + len(self._cases)

    @property
    def coming_bytes(self) -> int:
        """What those take at most that are not computed yet."""
        every = {id(each): each for each in (self._own, *self._cases.values())}
        return sum(each.coming_bytes for each in every.values())

    def _compute(
        self, lowered: LoweredModel, problems: list[Problem], tell: Progress
    ) -> Iterator[ComputedCase]:
        memory = _shared(self._own.memory(), lowered)
        yield from compute_cases(lowered, self._own.interface, self._seed, memory, problems, tell)


def _shared(memory: Mapping[str, Array], lowered: LoweredModel) -> dict[str, Array]:
    """What is known of one form's tensors and stands for the same in another, as this lays it out.

    Names of the original model stand for one value through all passes. Others may stand for something else in each
    form, but for copies of the model's tensors with their channels last.
    """
    values, original = lowered.program.values, _names(lowered.original)
    return {
        name: array
        for name, array in memory.items()
        if name.removesuffix(_LAST) in original
        if name not in values or values[name].dtype.numpy == array.dtype
    }


def _names(graph: FlatGraph) -> set[str]:
    return {*graph.inputs, *chain.from_iterable(each.proto.output for each in graph.nodes)}
