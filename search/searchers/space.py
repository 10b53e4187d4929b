"""Searchers see a problem's legal schedules as rows of a table, and as genes of small integers.

A *row* numbers a legal schedule. Its *genome* holds, for each parameter, the index of its value
among the values that legal schedules use. A dense index over all genomes tells the row of a genome
or that it is illegal, so legality costs one look-up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wpk.errors import ScheduleError
from wpk.performance import Columns, Floats
from wpk.schedules import Schedule
from wpk.search.searchers.experience import Encoded, Experience, encoded

Rows = NDArray[np.int64]

ABSENT = -1
"""The row of a genome that is no legal schedule."""


class SearchSpace:
    """A search space holds the schedules of one template to search for one problem.

    Attributes:
        names: The parameters, in the order of the schedule's fields.
        values: For each parameter, the values that the schedules use, rising.
        genomes: For each row its genome: (rows, parameters) of indices into ``values``.
        features: What is searched for, as named numbers (see `Problem.features`).
        promising: So many first rows are worth trying before a searcher proposes its own.
        experience: What was measured of other problems; None where nothing was.
    """

    def __init__(
        self,
        schedule_type: type[Schedule],
        columns: Columns,
        features: Mapping[str, float],
        promising: int = 0,
        estimates: Floats | None = None,
        experience: Experience | None = None,
    ) -> None:
        """Index the schedules.

        Args:
            schedule_type: What the rows are instances of.
            columns: The legal schedules, each once.
            features: The problem in numbers.
            promising: How many of the first a model thinks best.
            estimates: Seconds of each that a model predicts; None where none does.
            experience: Trials of other problems with the same template.

        Raises:
            ScheduleError: There are no schedules.
        """
        self._schedule_type = schedule_type
        self.names = tuple(field.name for field in fields(schedule_type))
        self.features = dict(features)
        self.promising, self.experience = promising, experience
        table = np.stack([columns[name] for name in self.names], axis=1)
        if not len(table):
            raise ScheduleError(
                f"there is no {schedule_type.__name__} to search",
                fix="search only templates that have legal schedules for the problem",
            )
        split = [np.unique(column, return_inverse=True) for column in table.T]
        self.values: tuple[Rows, ...] = tuple(values for values, _ in split)
        self.genomes: Rows = np.stack([inverse.reshape(-1) for _, inverse in split], axis=1)
        self._index = np.full(self.shape, ABSENT, np.int32)
        self._index[tuple(self.genomes.T)] = np.arange(len(table))
        axes = [np.full(size, axis) for axis, size in enumerate(self.shape)]
        self._move_axes = np.concatenate(axes)
        self._move_genes = np.concatenate([np.arange(size) for size in self.shape])
        spans = np.maximum(1, np.asarray(self.shape) - 1)
        self._points = (self.genomes / spans).astype(np.float32)
        self._logarithms = np.log2(1.0 + table)
        self._columns, self._estimates = columns, estimates

    @property
    def size(self) -> int:
        """Number of legal schedules."""
        return len(self.genomes)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each parameter."""
        return tuple(len(values) for values in self.values)

    @property
    def moves(self) -> int:
        """Number of ways to set one parameter to one of its values: the sum of `shape`."""
        return len(self._move_axes)

    def rows(self, genomes: Rows | Sequence[Sequence[int]]) -> Rows:
        """Return the row of each genome; `ABSENT` where it is illegal. Genes must lie within `shape`."""
        rows: Rows = self._index[tuple(np.asarray(genomes).T)].astype(np.int64)
        return rows

    def row(self, parameters: Sequence[tuple[str, int]]) -> int | None:
        """Return the row of a schedule given as names and values; None if it is not in the space."""
        given = dict(parameters)
        if set(given) != set(self.names):
            return None
        genome = []
        for name, values in zip(self.names, self.values, strict=True):
            gene = int(np.searchsorted(values, given[name]))
            if gene == len(values) or values[gene] != given[name]:
                return None
            genome.append(gene)
        row = int(self._index[tuple(genome)])
        return None if row == ABSENT else row

    def schedule(self, row: int) -> Schedule:
        """Return the schedule of a row."""
        genes = zip(self.names, self.values, self.genomes[row], strict=True)
        return self._schedule_type(**{name: int(values[gene]) for name, values, gene in genes})

    def after_moves(self, rows: Rows) -> Rows:
        """Return the row to which each move leads from each row: (rows, moves); `ABSENT` where it is illegal.

        A move sets one parameter to one value; setting what is set already leads to the same row.
        """
        genomes = np.repeat(self.genomes[rows][:, None, :], self.moves, axis=1)
        genomes[:, np.arange(self.moves), self._move_axes] = self._move_genes
        after: Rows = self._index[tuple(np.moveaxis(genomes, -1, 0))].astype(np.int64)
        return after

    def neighbours(self, row: int) -> Rows:
        """Return the legal schedules that differ from a row's in exactly one parameter."""
        after = self.after_moves(np.asarray([row]))[0]
        others: Rows = after[(after != ABSENT) & (after != row)]
        return others

    def point(self, row: int) -> NDArray[np.float32]:
        """Return the genome scaled to between 0 and 1, for searchers in continuous spaces."""
        point: NDArray[np.float32] = self._points[row]
        return point

    @cached_property
    def encoded(self) -> Encoded:
        """The rows as inputs of a network; see `experience.encoded`."""
        return encoded(self.features, self._columns, self._estimates)

    def like(self, parameters: Mapping[str, int], among: Rows) -> int:
        """Return the one of some rows that is most like a schedule of another space; ties go to the first.

        Args:
            parameters: By name, those of this space.
            among: At least one row.
        """
        wanted = np.log2(1.0 + np.asarray([parameters[name] for name in self.names]))
        distances = np.abs(self._logarithms[among] - wanted).sum(axis=1)
        return int(among[int(np.argmin(distances))])

    def nearest(self, point: NDArray[np.float32], among: Rows) -> int:
        """Return the one of some rows whose point is nearest; ties go to the first.

        Args:
            point: One number a parameter, as `point` scales it.
            among: At least one row.
        """
        distances = np.square(self._points[among] - point).sum(axis=1)
        return int(among[int(np.argmin(distances))])
