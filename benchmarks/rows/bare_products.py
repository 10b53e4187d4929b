"""What share of the tensor cores' peak a network's products reach by cuBLAS alone: no norm, bias, activation or residual.

`product_peak` holds an engine to a share of the peak in which all that is fused into products counts. Here each
distinct product of the same network is timed by itself, as bare multiplications of matrices that L2 may hold already, by the
fastest of PyTorch's front ends to cuBLAS and of both layouts of the weight. It is held to nothing: it says what the library
makes of products of these sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from math import fsum
from typing import Any

from subjects.bare_product import REPETITIONS, WAYS, BareGraph, BareProduct

from rows.base import Context, Outcome, Row, microseconds
from rows.plan_products import is_product
from rows.product_peak import CASES
from rows.zoo import ZooCase
from wpk.backends import open_gpu
from wpk.device import CudaDevice, Patience, Subject, time_side_by_side
from wpk.lowering.model import lower_model
from wpk.problems import Problem
from wpk.targets import features_of, target_of_gpu
from wpk.trial import Regime

_PATIENCE = Patience(least=11, most=31, noise=0.005, seconds=0.3)


@dataclass(frozen=True)
class Timed:
    """A product: how many a network has, the library's median seconds of one, and the way that is fastest."""

    product: BareProduct
    count: int
    seconds: float
    library: str
    is_turned: bool


def rows() -> list[Row]:
    """One a network."""
    claim = "the same products by cuBLAS alone, bare, beside the datasheet's peak, fp16"
    return [Row(f"bare.{case}", claim, partial(_measure, case)) for case in CASES]


def products_of(problems: list[Problem]) -> Counter[BareProduct]:
    """Return the products among problems that `plan_products` counts, before any two are joined, and how many of each there are."""
    return Counter(BareProduct.of(each) for each in problems if is_product(each))


def _measure(case: ZooCase, context: Context) -> Outcome:
    with open_gpu() as device:
        target = target_of_gpu(device.facts.name, device.facts.capability)
        model, features = case.model(context), features_of(target.arch)
        lowered = lower_model(model, {}, case.precision, features=features)
        counts = products_of(list(lowered.program.problems))
        timed = [_timed(device, product, count) for product, count in sorted(counts.items())]
    peak = target.tensor_peak(case.precision)
    if peak is None:
        raise ValueError(f"{target.name} has no tensor cores for {case.precision}")
    return judge(timed, peak, context.records.get(f"zoo.{case}", {}))


def _timed(device: CudaDevice, product: BareProduct, count: int) -> Timed:
    graphs = [BareGraph(product, way, device.stream) for way in WAYS]
    subjects = [Subject(each, REPETITIONS, each.replay, Regime.WARM) for each in graphs]
    medians = [timing.median for timing in time_side_by_side(device, subjects, _PATIENCE)]
    seconds, (library, is_turned) = min(zip(medians, WAYS, strict=True))
    return Timed(product, count, seconds, library, is_turned)


def judge(timed: list[Timed], peak: float, ours: Mapping[str, Any]) -> Outcome:
    """Tell the share of the peak, beside the engine's where its row has been measured.

    Args:
        timed: The distinct products.
        peak: Operations a second of the datasheet.
        ours: The record of the network's row, or nothing.
    """
    seconds = fsum(each.count * each.seconds for each in timed)
    operations = sum(each.count * each.product.operations for each in timed)
    count, share = sum(each.count for each in timed), operations / seconds / peak
    engine = ours.get("figures", {}).get("products")
    beside = (
        ""
        if engine is None
        else f"; the engine's, with all that is fused into them, {engine['share']:.2f}"
    )
    summary = f"{count} bare products in {microseconds(seconds)}: {share:.2f} of the peak{beside}"
    figures = {
        "products": [asdict(each) for each in timed],
        "operations": operations,
        "seconds": seconds,
        "peak": peak,
        "share": share,
    }
    return Outcome(True, summary, figures)
