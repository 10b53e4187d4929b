"""What ONNX Runtime says of a model, computed beside everything else."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, Future
from functools import cached_property
from pathlib import Path
from typing import Protocol

from wpk.checks.closer_look import CloserLook
from wpk.checks.disturbed import DisturbedModel
from wpk.checks.doubles import exact_to_double
from wpk.checks.evaluation import EvaluationError
from wpk.checks.float64_nodes import Array
from wpk.checks.limits import OutputDistance
from wpk.checks.model_check import check_outputs
from wpk.checks.scope import SampleRound, Tolerance
from wpk.checks.unmoved import INPUTS, moved_with_other_weights, moving_tensors, unmoved_outputs
from wpk.checks.witness import ModelReference, WitnessError
from wpk.dtypes import Precision
from wpk.engine import TakesInputs, random_inputs
from wpk.lowering.flat_graph import FlatGraph
from wpk.plan import Check, Outcome
from wpk.progress import Progress

Arrays = Mapping[str, Array]


class Asked(TakesInputs, Protocol):
    """Whose outputs are judged: a plan, or another engine.

    Attributes:
        precision: What its multiplications may use.
    """

    @property
    def precision(self) -> Precision: ...


class Witness:
    """ONNX Runtime, asked in a thread of its own."""

    def __init__(self, beside: Executor, file: Path, model: FlatGraph) -> None:
        """Begin to load the model; what goes wrong is said when it is asked.

        Args:
            beside: Of one thread.
            file: The model's.
            model: The model as it was loaded, before any pass.
        """
        self._beside, self._model = beside, model
        self._loading = beside.submit(ModelReference, file)

    def asked(self, plan: Asked, each: SampleRound) -> "Testimony":
        """Begin to compute the outputs for all samples of a round.

        Args:
            plan: Whose inputs are drawn, should further ones be needed.
            each: The samples.
        """
        return Testimony(self._submit, self._model, plan, each)

    def _submit(self, inputs: Arrays) -> Future[Arrays]:
        return self._beside.submit(lambda: self._loading.result()(inputs))


class Testimony:
    """The model's outputs for the samples of a round."""

    def __init__(
        self,
        submit: Callable[[Arrays], Future[Arrays]],
        model: FlatGraph,
        plan: Asked,
        each: SampleRound,
    ) -> None:
        """Ask for all of them; see `Witness.asked`."""
        self._submit, self._model, self._plan, self._round = submit, model, plan, each
        self._asked = [submit(sample.arrays) for sample in each.samples]

    def outputs(self, index: int) -> Arrays:
        """Those for one sample, waited for.

        Raises:
            WitnessError: ONNX Runtime cannot compute them.
        """
        return self._asked[index].result()

    def checks(
        self,
        run: Callable[[Arrays], Arrays],
        progress: Progress,
        rounded: Mapping[str, OutputDistance] | None = None,
        *,
        tolerance: Tolerance | None,
        closer: bool = True,
    ) -> Iterator[Check]:
        """Execute an engine on all samples, and hold its outputs against these.

        Args:
            run: The engine.
            progress: Told of every sample.
            rounded: By how much each output differs where only the values in memory are rounded; None where that is
                not known.
            tolerance: Decides instead of the limits.
            closer: Whether a closer look decides where the limits do not do.
        """
        at = "".join(f", {name} {size}" for name, size in self._round.dims.items())
        stage, count = f"comparing with ONNX Runtime{at}", len(self._round.samples)
        for done, sample in enumerate(self._round.samples):
            progress(stage, done, count)
            name = f"ONNX Runtime, {sample.name}"
            try:
                right, unmoved = self.outputs(done), self.unmoved
            except WitnessError as error:
                yield Check(name, Outcome.INCONCLUSIVE, error.what)
                continue
            yield check_outputs(
                run,
                right,
                sample.arrays,
                self._plan.precision,
                name,
                rounded,
                unmoved=unmoved,
                doubles=self.doubles,
                tolerance=tolerance,
                closer=self.closer_look(done) if closer else None,
            )
        progress(stage, count, count)

    def closer_look(self, index: int) -> CloserLook:
        """Return what roundings do to the outputs for one sample; nothing is computed before it is asked for."""
        inputs = self._round.samples[index].arrays
        return CloserLook(DisturbedModel(self._model, self._plan.precision, inputs))

    @cached_property
    def unmoved(self) -> frozenset[str]:
        """Names of the outputs that are the same for all inputs, though they are computed from them.

        They witness nothing. An output that is a constant of the model's, or of its architecture
        whatever its weights are, is right or wrong.
        """
        known = [each.result() for each in self._asked if each.exception() is None]
        same = unmoved_outputs(known, self._further()) & moving_tensors(self._model)
        if not same:
            return same
        drawn = [random_inputs(self._plan, seed, self._round.dims) for seed in range(2)]
        try:
            return moved_with_other_weights(self._model, drawn, same)
        except EvaluationError:
            return same

    @cached_property
    def doubles(self) -> frozenset[str]:
        """Names of the tensors of fp64 that nothing narrower leads to."""
        given = {**self._model.constants, **self._round.samples[0].arrays}
        return exact_to_double(self._model, {name: array.dtype for name, array in given.items()})

    def _further(self) -> Iterator[Arrays]:
        for seed in range(len(self._asked), INPUTS):
            inputs = random_inputs(self._plan, seed, self._round.dims)
            try:
                yield self._submit(inputs).result()
            except WitnessError:
                continue
