"""Every anchor operator with its rule."""

from wpk.lowering.anchors.base import AnchorRule
from wpk.lowering.anchors.convolution import ConvolutionRule
from wpk.lowering.anchors.determinant import DeterminantRule
from wpk.lowering.anchors.indexed import GatherElementsRule, GatherNDRule
from wpk.lowering.anchors.matmul import MatmulRule
from wpk.lowering.anchors.movement import GatherRule, PadRule, ResizeRule
from wpk.lowering.anchors.normalisation import OPERATORS as NORMALISATIONS
from wpk.lowering.anchors.normalisation import NormalisationRule
from wpk.lowering.anchors.pooling import PoolingRule
from wpk.lowering.anchors.prefix_scan import PrefixScanRule
from wpk.lowering.anchors.reduction import OPERATORS as REDUCTIONS
from wpk.lowering.anchors.reduction import ReductionRule
from wpk.lowering.anchors.roi_align import RoiAlignRule
from wpk.lowering.anchors.scatter import (
    OneHotRule,
    ScatterElementsRule,
    ScatterNDRule,
    TensorScatterRule,
)
from wpk.lowering.anchors.top_indices import ArgRule, TopKRule

RULES: dict[str, AnchorRule] = {
    **dict.fromkeys(("Conv", "ConvTranspose"), ConvolutionRule()),
    **dict.fromkeys(("MatMul", "Gemm"), MatmulRule()),
    **dict.fromkeys(("MaxPool", "AveragePool"), PoolingRule()),
    "RoiAlign": RoiAlignRule(),
    **dict.fromkeys(REDUCTIONS, ReductionRule()),
    **dict.fromkeys(NORMALISATIONS, NormalisationRule()),
    "Gather": GatherRule(),
    "GatherElements": GatherElementsRule(),
    "GatherND": GatherNDRule(),
    "ScatterElements": ScatterElementsRule(),
    "ScatterND": ScatterNDRule(),
    "OneHot": OneHotRule(),
    "TensorScatter": TensorScatterRule(),
    **dict.fromkeys(("ArgMax", "ArgMin"), ArgRule()),
    "TopK": TopKRule(),
    "Det": DeterminantRule(),
    "CumSum": PrefixScanRule(),
    "CumProd": PrefixScanRule(),
    "Pad": PadRule(),
    **dict.fromkeys(("Resize", "Upsample"), ResizeRule()),
}

SHAPES = {operator: rule.shape for operator, rule in RULES.items()}
"""For every anchor operator, the shape of its output."""
