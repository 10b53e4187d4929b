"""Problems: frozen, hashable descriptions of an operator's work. Equal problems share one result."""

from wpk.problems.access import Access
from wpk.problems.attention import Attention
from wpk.problems.box_selection import MOST_BOXES, BoxSelection
from wpk.problems.clamped_convolution import ClampedConvolution
from wpk.problems.convolution import Convolution
from wpk.problems.determinant import MOST_ROWS, Determinant
from wpk.problems.elementwise import Elementwise
from wpk.problems.fallback import Crossing, Fallback
from wpk.problems.family import Family
from wpk.problems.feed_forward import FeedForward, RowNorm
from wpk.problems.indexed import Advance, IndexedRead, IndexedWrite, WriteKind
from wpk.problems.lifted import Lifted, is_quantised, lifted
from wpk.problems.matmul import FEW_ROWS, Matmul
from wpk.problems.movement import (
    Gather,
    NearestMode,
    Pad,
    PadMode,
    Resize,
    ResizeCoordinates,
    ResizeMode,
)
from wpk.problems.normalisation import Normalisation, NormKind
from wpk.problems.normed_matmul import NormedMatmul
from wpk.problems.operand import Epilogue, Tensor
from wpk.problems.placed_rows import PlacedRows, RowPlacing
from wpk.problems.pooling import Pooling, PoolKind
from wpk.problems.prefix_scan import PrefixScan, ScanKind
from wpk.problems.problem import FieldExpression, Problem
from wpk.problems.recurrence import Cell, Recurrence
from wpk.problems.reduction import ReduceKind, Reduction
from wpk.problems.roi_align import MOST_SAMPLES, RoiAlign, RoiMode
from wpk.problems.row_moments import MomentsMatmul, moments_group, moments_of_row, numbers_of_group
from wpk.problems.slots import stored_slots
from wpk.problems.squeeze import RUN, Squeeze, whole_runs
from wpk.problems.top_indices import TopIndices
from wpk.problems.windows import Windows, windows_of
