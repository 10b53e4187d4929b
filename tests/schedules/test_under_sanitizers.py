"""A plan of each schedule template, executed under AddressSanitizer and UndefinedBehaviorSanitizer.

The shapes divide by no tile, so that the guards of edges are at work.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from support.networks.drawn_weights import parse_model
from support.networks.one_operator import (
    ACROSS,
    ATTENTION,
    BLOCK,
    BY_COLUMNS,
    CONVOLUTIONS,
    DEPTHWISE,
    DEPTHWISE_IMAGES,
    DETERMINANTS,
    ELEMENTS,
    FEW_ROWS,
    FIRST,
    FIRST_OF_ROWS,
    GROUPED,
    LONG_ROWS,
    NORMED,
    PADDED,
    PICKED,
    PICKED_EACH,
    POOL,
    POOLED,
    PRODUCT,
    RANKED,
    RECURRENT,
    REGIONS,
    REPEATED,
    RESIZED,
    ROWS,
    SELECTED,
    SQUEEZED,
    SUM,
    SUMS,
    TURNED,
    WRITTEN,
)

from wpk.emulator import SANITIZED, EmulatorProcess
from wpk.engine import Engine, random_inputs
from wpk.pipeline import optimize
from wpk.plan.plan_file import read_plan
from wpk.schedules.registry import TEMPLATE_OF

pytestmark = pytest.mark.sanitized


@dataclass(frozen=True)
class Case:
    """A model whose plan needs the template.

    Attributes:
        template: The template.
        model: ONNX text.
        weights: Their names.
        precision: What it is optimized for.
        beside: Templates of the model's other operators.
        changed: Keys of the sites that passes decide otherwise there.
    """

    template: str
    model: str
    weights: str = ""
    precision: str = "fp32"
    beside: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


CASES = (
    Case("conv_simt", CONVOLUTIONS, "w v"),
    Case("conv_mma", CONVOLUTIONS, "w v", "fp16"),
    Case("conv_wgmma", POOLED, "w", "fp16", ("pooling",)),
    Case("conv_halo", POOLED, "w", "fp16", ("pooling",)),
    Case("conv_patch", FIRST, "w", "fp16"),
    Case("conv_grouped", GROUPED, "w", "fp16", ("pooling",)),
    Case("depthwise", DEPTHWISE, "w"),
    Case("depthwise_rows", DEPTHWISE_IMAGES, "w", "fp16", ("pooling",)),
    Case("gemm_simt", PRODUCT, "w"),
    Case("gemm_mma", PRODUCT, "w", "fp16"),
    Case("gemm_mma", NORMED, "v u g b w", "fp16"),
    Case("gemm_skinny", FEW_ROWS, "w"),
    Case("gemm_wgmma", PRODUCT, "w"),
    Case("thin_wgmma", BY_COLUMNS, "w b", "fp16", ("normalisation",)),
    Case("gemm_wgmma", BY_COLUMNS, "w b", "fp16", ("normalisation",)),
    Case("attention_simt", ATTENTION, "a b c", "fp32", ("gemm_simt",)),
    Case("attention_mma", ATTENTION, "a b c", "fp16", ("gemm_mma", "elementwise")),
    Case("attention_wgmma", ATTENTION, "a b c", "fp16", ("gemm_mma", "elementwise")),
    Case("recurrence_simt", RECURRENT, "w r", "fp32", ("gemm_simt", "elementwise")),
    Case("recurrence_mma", RECURRENT, "w r", "fp16", ("gemm_mma", "elementwise")),
    Case("squeeze", SQUEEZED, "d u"),
    Case(
        *("feed_forward_wgmma", BLOCK, "v u b w c", "fp16", ("gemm_mma",)),
        changed=("fuse-feed-forwards:*",),
    ),
    Case("pooling", POOL),
    Case("roi_align", REGIONS),
    Case("reduction", SUM),
    Case("normalisation", ROWS),
    Case("normalisation_cluster", LONG_ROWS, "s"),
    Case("normalisation_across", ACROSS),
    Case("elementwise", ELEMENTS),
    Case("elementwise_tiled", TURNED),
    Case("gather", PICKED, "w"),
    Case("indexed_read", PICKED_EACH),
    Case("indexed_write", WRITTEN),
    Case("latest_write", WRITTEN),
    Case("determinant", DETERMINANTS),
    Case("box_selection", SELECTED, beside=("elementwise",)),
    Case("prefix_scan", SUMS),
    Case("arg_reduction", FIRST_OF_ROWS),
    Case("top_by_rank", RANKED),
    Case("top_by_sorting", RANKED),
    Case("placed_rows", REPEATED),
    Case("pad", PADDED),
    Case("resize", RESIZED),
)


def test_every_template_has_a_case() -> None:
    assert {case.template for case in CASES} == set(TEMPLATE_OF)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.template)
def test_nothing_is_reported(case: Case, tmp_path: Path, one_cubin: None) -> None:
    model, path = tmp_path / "model.onnx", tmp_path / "model.plan"
    onnx.save(parse_model(case.model, case.weights), model)
    others = set(TEMPLATE_OF) - {case.template, *case.beside}
    optimize(
        model,
        path,
        target="h200",
        precision=case.precision,
        skip_templates=others,
        changed_sites=case.changed,
        check="off",
    )
    bundle = read_plan(path)
    assert case.template in {step.candidate.maker.name for step in bundle.plan.steps}
    inputs = random_inputs(bundle.plan, 0, {})
    (right,) = onnxruntime.InferenceSession(str(model)).run(None, inputs)
    with EmulatorProcess(SANITIZED) as device, Engine(bundle, device) as engine:
        (y,) = engine.run(inputs).values()
    # That it computes at all: kernels' numbers are held to their bounds elsewhere.
    np.testing.assert_allclose(y, right, rtol=0.05, atol=0.05 * float(np.abs(right).max()))
