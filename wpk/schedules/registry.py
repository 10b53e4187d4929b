"""All schedule templates."""

from typing import Any

from wpk.schedules.arg_reduction import ArgReductionTemplate
from wpk.schedules.attention_mma import AttentionMmaTemplate
from wpk.schedules.attention_simt import AttentionSimtTemplate
from wpk.schedules.box_selection import BoxSelectionTemplate
from wpk.schedules.conv_grouped import ConvGroupedTemplate
from wpk.schedules.conv_halo import ConvHaloTemplate
from wpk.schedules.conv_mma import ConvMmaTemplate
from wpk.schedules.conv_patch import ConvPatchTemplate
from wpk.schedules.conv_simt import ConvSimtTemplate
from wpk.schedules.depthwise import DepthwiseTemplate
from wpk.schedules.depthwise_rows import DepthwiseRowsTemplate
from wpk.schedules.determinant import DeterminantTemplate
from wpk.schedules.elementwise import ElementwiseTemplate
from wpk.schedules.elementwise_tiled import ElementwiseTiledTemplate
from wpk.schedules.gather import GatherTemplate
from wpk.schedules.gemm_mma import GemmMmaTemplate
from wpk.schedules.gemm_simt import GemmSimtTemplate
from wpk.schedules.gemm_skinny import GemmSkinnyTemplate
from wpk.schedules.indexed_read import IndexedReadTemplate
from wpk.schedules.indexed_write import IndexedWriteTemplate
from wpk.schedules.latest_write import LatestWriteTemplate
from wpk.schedules.normalisation import NormalisationTemplate
from wpk.schedules.normalisation_across import NormalisationAcrossTemplate
from wpk.schedules.normalisation_cluster import NormalisationClusterTemplate
from wpk.schedules.pad import PadTemplate
from wpk.schedules.placed_rows import PlacedRowsTemplate
from wpk.schedules.pooling import PoolingTemplate
from wpk.schedules.prefix_scan import PrefixScanTemplate
from wpk.schedules.recurrence_mma import RecurrenceMmaTemplate
from wpk.schedules.recurrence_simt import RecurrenceSimtTemplate
from wpk.schedules.reduction import ReductionTemplate
from wpk.schedules.resize import ResizeTemplate
from wpk.schedules.roi_align import RoiAlignTemplate
from wpk.schedules.squeeze import SqueezeTemplate
from wpk.schedules.template import ScheduleTemplate
from wpk.schedules.top_by_rank import TopByRankTemplate
from wpk.schedules.top_by_sorting import TopBySortingTemplate
from wpk.schedules.wgmma.attention import AttentionWgmmaTemplate
from wpk.schedules.wgmma.conv import ConvWgmmaTemplate
from wpk.schedules.wgmma.feed_forward import FeedForwardWgmmaTemplate
from wpk.schedules.wgmma.gemm import GemmWgmmaTemplate
from wpk.schedules.wgmma.thin import ThinWgmmaTemplate

TEMPLATES: tuple[ScheduleTemplate[Any, Any], ...] = (
    ConvMmaTemplate(),
    ConvPatchTemplate(),
    ConvGroupedTemplate(),
    ConvSimtTemplate(),
    ConvWgmmaTemplate(),
    ConvHaloTemplate(),
    GemmMmaTemplate(),
    GemmSimtTemplate(),
    GemmSkinnyTemplate(),
    GemmWgmmaTemplate(),
    ThinWgmmaTemplate(),
    AttentionMmaTemplate(),
    AttentionSimtTemplate(),
    AttentionWgmmaTemplate(),
    FeedForwardWgmmaTemplate(),
    DepthwiseTemplate(),
    DepthwiseRowsTemplate(),
    PoolingTemplate(),
    RoiAlignTemplate(),
    RecurrenceMmaTemplate(),
    RecurrenceSimtTemplate(),
    ReductionTemplate(),
    NormalisationTemplate(),
    NormalisationClusterTemplate(),
    NormalisationAcrossTemplate(),
    ElementwiseTemplate(),
    ElementwiseTiledTemplate(),
    GatherTemplate(),
    IndexedReadTemplate(),
    IndexedWriteTemplate(),
    LatestWriteTemplate(),
    PadTemplate(),
    PlacedRowsTemplate(),
    ResizeTemplate(),
    PrefixScanTemplate(),
    DeterminantTemplate(),
    BoxSelectionTemplate(),
    ArgReductionTemplate(),
    SqueezeTemplate(),
    TopByRankTemplate(),
    TopBySortingTemplate(),
)
"""One instance of each."""

TEMPLATE_OF = {template.name: template for template in TEMPLATES}
"""By name, as plans and the tuning store hold it."""
