"""PUL, the score of DeepCuts (its section 4), on the work of many schedules at once. `--prune pul` prunes by it.

The paper's symbols stand in the docstrings; its slips are corrected beside the equation they are
in. What the paper did not model (tensor cores, L2, occupancy) is in `wpk.performance.extension`.

Source: Jung, Dao, Lee, "DeepCuts: a deep learning optimization framework for versatile GPU
workloads", PLDI 2021, and its first author's thesis, chapter 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wpk.performance.units import ordinary_peak
from wpk.performance.work import Floats, Work
from wpk.targets import Target


@dataclass(frozen=True)
class Pul:
    """The four factors and their product, one entry a schedule, each between 0 and 1.

    Attributes:
        gm_ratio: Global memory bandwidth (GMRatio).
        sm_ratio: Shared memory latency (SMRatio).
        wb_ratio: Balance between the SMs (WBRatio).
        coef_r: 1 where the hardware's limits are kept, else 0 (COEF_r).
    """

    gm_ratio: Floats
    sm_ratio: Floats
    wb_ratio: Floats
    coef_r: Floats

    @property
    def score(self) -> Floats:
        """``PUL = GMRatio * SMRatio * WBRatio * COEF_r`` (section 4.3)."""
        return self.gm_ratio * self.sm_ratio * self.wb_ratio * self.coef_r


def pul(work: Work, target: Target, coef_bc: Floats | float = 1.0) -> Pul:
    """Return PUL as the paper defines it, for fp32 on the ordinary cores.

    Args:
        work: What the schedules make the GPU do.
        target: PERF_peak, BW_global, LAT_shared, NUM_SM, MAX_thread, MAX_shared.
        coef_bc: COEF_bc of each schedule; 1 where conflicts have not been counted, which makes the
            score an upper limit of the counted one.
    """
    return Pul(
        gm_ratio=gm_ratio(work, target),
        sm_ratio=sm_ratio(work, target, coef_bc),
        wb_ratio=wb_ratio(work.blocks, target.sm_count),
        coef_r=coef_r(work, target),
    )


def oitb(work: Work, target: Target) -> Floats:
    """Return the operations per byte that a block loads, infinite where it loads nothing.

    ``OITB = COMP_block / (SIZE_element * TRANS_global * NUM_trans)``; ``SIZE_element *
    TRANS_global`` is the target's ``transaction_bytes``.
    """
    loaded = work.block_transactions * target.transaction_bytes
    endless = np.full(loaded.shape, np.inf)
    intensity: Floats = np.divide(work.block_flops, loaded, out=endless, where=loaded > 0)
    return intensity


def gm_ratio(work: Work, target: Target) -> Floats:
    """Return ``GMRatio = min(1, OITB / (R_peak / BW_global))``.

    1 for the successor of a fusion through shared memory, which loads nothing (section 4.4).
    """
    peak_intensity = ordinary_peak(work.numbers, target) / target.global_bandwidth
    ratio: Floats = np.minimum(1.0, oitb(work, target) / peak_intensity)
    return ratio


def sm_ratio(work: Work, target: Target, coef_bc: Floats | float = 1.0) -> Floats:
    """Return ``SMRatio = min(1, (COMP_thread / N_load) / (LAT_shared * COEF_bc))``; 1 without loads.

    The paper's example: 10 operations a load at 20 cycles, no conflicts: 0.5.
    """
    hidden = np.divide(
        work.thread_flops,
        work.thread_loads,
        out=np.full(work.thread_flops.shape, np.inf),
        where=work.thread_loads > 0,
    )
    ratio: Floats = np.minimum(1.0, hidden / (target.shared_latency * coef_bc))
    return ratio


def wb_ratio(blocks: Floats, sm_count: int) -> Floats:
    """Return the share of the SMs' time that blocks fill: ``N_TB / (N_SM * ceil(N_TB / N_SM))``.

    The paper prints ``1 - ((N_TB mod N_SM) / N_SM) / ceil(N_TB / N_SM)``, which subtracts the SMs
    that do work in the last wave instead of those that idle: one block on 132 SMs would score
    0.992. (The thesis loses the ``mod`` as well.) Subtracting the idle ones,
    ``1 - ((-N_TB mod N_SM) / N_SM) / ceil(N_TB / N_SM)``, is the form above: 0.0076.
    """
    ratio: Floats = blocks / (sm_count * np.ceil(blocks / sm_count))
    return ratio


def coef_r(work: Work, target: Target) -> Floats:
    """Return ``COEF_r``: 1 where ``NUM_thread <= MAX_thread`` and ``SIZE_shared <= MAX_shared``, else 0.

    The paper prints ``<``, which would refuse a block of 1024 threads that every GPU runs.
    """
    fits = (work.threads <= target.max_threads_block) & (
        work.shared_bytes <= target.max_shared_block
    )
    return fits.astype(np.float64)
