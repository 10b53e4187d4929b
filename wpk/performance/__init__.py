"""Performance models: the bound (roofline), the scores (of waves, and PUL) and the estimate. Three things, three names."""

from wpk.performance.bank_conflicts import SharedCost, shared_cost
from wpk.performance.bound import Bound, bound
from wpk.performance.estimate import estimate, estimate_of, least_possible
from wpk.performance.extension import extended_pul, extended_pul_of
from wpk.performance.occupancy import SCHEDULERS, resident_blocks
from wpk.performance.pul import pul
from wpk.performance.rates import GATHER_SLOTS, WARP_MMA_SHARE, WARPGROUP_SHARE
from wpk.performance.tables import input_extent, matmul_flops, pooling_flops, row_transactions
from wpk.performance.units import tensor_peak
from wpk.performance.waves import Grids, l2_seconds
from wpk.performance.work import Columns, Floats, Rows, SharedAccess, Work, at_rows
