"""Boxes that do not overlap others of a higher score."""

from collections.abc import Iterator
from dataclasses import dataclass

from wpk.extent import Extent
from wpk.problems.access import Access
from wpk.problems.family import Family
from wpk.problems.operand import Tensor
from wpk.problems.phrases import batch_words, sentence
from wpk.problems.problem import Accesses, Problem, Traffic


@dataclass(frozen=True)
class BoxSelection(Problem):
    """``y[i,c,j] = (i, c, b)``: box b is the j-th that is selected of class c; (-1, -1, -1) where there are fewer.

    Boxes come in the order of their scores, the higher first, of equal ones the lower b; those whose score is not
    above ``threshold``, and those with NaN, do not. One is selected unless it overlaps one that was: where the area
    that they share is more than ``overlap`` of the area that they cover. Arithmetic is fp32, in ONNX Runtime's order.

    Operator inputs: ``boxes, scores``. Domain of boxes: (batch, count, 4): two corners (y, x), or where they are
    ``centred`` centre and size (x, y, width, height); of scores: (batch, classes, count); of y: (batch, classes,
    most, 3).
    """

    centred: bool
    overlap: float
    threshold: float | None
    batch_size: Extent
    classes: int
    count: int
    most: int
    boxes: Tensor
    scores: Tensor
    y: Tensor

    @property
    def leading(self) -> Extent:
        """The extent that kernels take at run time."""
        return self.batch_size

    family = Family.MOVEMENT

    def words(self) -> str:
        """See `Problem.words`."""
        what = f"select {self.most} of {self.count} boxes for {self.classes} classes"
        return sentence(what, batch_words(self.batch_size))

    def features(self) -> dict[str, float]:
        """See `Problem.features`."""
        sizes = {"classes": self.classes, "count": self.count, "most": self.most}
        return {"batch": self.batch_size.value, **sizes}

    def accesses(self) -> Accesses:
        """See `Problem.accesses`."""
        boxes = Access(self.boxes, (self.batch_size, self.count, 4))
        scores = Access(self.scores, (self.batch_size, self.classes, self.count))
        return (boxes, scores), Access(self.y, (self.batch_size, self.classes, self.most, 3))

    def traffic(self) -> Traffic:
        """See `Problem.traffic`; no box may have a score above the threshold."""
        (_, scores), y = self.accesses()
        assert scores is not None
        compared = self.batch_size.value * self.classes * self.count
        return Traffic(scores.distinct_bytes + y.distinct_bytes, 0, compared)

    def terms(self, elements: int) -> int:
        """See `Problem.terms`."""
        return elements * self.count

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """See `Problem.contradictions`."""
        if self.most > self.count:
            yield "most", f"{self.most} of {self.count} boxes"
        if self.count > MOST_BOXES:
            yield "count", f"{self.count} boxes, at most {MOST_BOXES} are carried"


MOST_BOXES = 2**16
"""Of a batch: a block of 1024 threads looks at all of them, and a thread remembers 64."""
