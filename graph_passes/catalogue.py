"""The passes in the order in which they run.

One group runs to a fixpoint, so the order only decides how soon it settles and who comes first where
two could take a node: old forms are raised first; folding and clean-up come before recognition, so
that patterns are found bare; recognition comes before constants move into weights, since they are
part of the patterns.
"""

from collections.abc import Collection
from itertools import chain

from wpk.dtypes import DType, Precision
from wpk.graph_passes.clean.control_flow.collected_sequences import CollectedSequences
from wpk.graph_passes.clean.control_flow.inline_conditionals import InlineConditionals
from wpk.graph_passes.clean.control_flow.loops_to_scans import LoopsToScans
from wpk.graph_passes.clean.control_flow.scan_axes import ScanAxes
from wpk.graph_passes.clean.control_flow.select_conditionals import SelectConditionals
from wpk.graph_passes.clean.control_flow.unroll_loops import UnrollLoops
from wpk.graph_passes.clean.convolution.column_parts import ColumnParts
from wpk.graph_passes.clean.convolution.column_products import ColumnProducts
from wpk.graph_passes.clean.convolution.deformed_windows import DeformedWindows
from wpk.graph_passes.clean.convolution.transposed_volumes import TransposedVolumes
from wpk.graph_passes.clean.convolution.unpool_parts import UnpoolParts
from wpk.graph_passes.clean.convolution.window_parts import WindowParts
from wpk.graph_passes.clean.definitions.attention_parts import AttentionParts
from wpk.graph_passes.clean.definitions.defined_forms import DefinedForms
from wpk.graph_passes.clean.definitions.fourier_products import FourierProducts
from wpk.graph_passes.clean.definitions.function_bodies import FunctionBodies
from wpk.graph_passes.clean.definitions.long_rows import LongRows
from wpk.graph_passes.clean.definitions.modern_forms import ModernForms
from wpk.graph_passes.clean.definitions.plain_forms import PlainForms
from wpk.graph_passes.clean.elimination.cast_chains import CastChains
from wpk.graph_passes.clean.elimination.common_subexpression import CommonSubexpressions
from wpk.graph_passes.clean.elimination.dead_code import DeadCode
from wpk.graph_passes.clean.elimination.identity_elimination import IdentityElimination
from wpk.graph_passes.clean.elimination.nan_guard import NanGuard
from wpk.graph_passes.clean.quantisation.byte_products import ByteProducts
from wpk.graph_passes.clean.quantisation.dynamic_quantisation import DynamicQuantisation
from wpk.graph_passes.clean.quantisation.quantisation_parts import QuantisationParts
from wpk.graph_passes.clean.quantisation.quantised_products import QuantisedProducts
from wpk.graph_passes.clean.quantisation.unsigned_bytes import UnsignedBytes
from wpk.graph_passes.clean.resampling.grid_sample_parts import GridSampleParts
from wpk.graph_passes.clean.resampling.resize_axes import ResizeAxes
from wpk.graph_passes.clean.resampling.resize_parts import ResizeParts
from wpk.graph_passes.core import GraphPass
from wpk.graph_passes.fold.attention_scale import ScaleBehindProduct, ScaleIntoProjection
from wpk.graph_passes.fold.batch_norm import (
    BatchNormToAffine,
    FoldBatchNormAfter,
    FoldBatchNormBefore,
)
from wpk.graph_passes.fold.certain_masks import CertainMasks
from wpk.graph_passes.fold.constant_chains import ConstantChains, ConstantForms
from wpk.graph_passes.fold.constant_folding import ConstantFolding
from wpk.graph_passes.fold.constants_into_weights import (
    ConstantsBeforeWeights,
    ConstantsIntoWeights,
    ScaleThroughBias,
)
from wpk.graph_passes.fold.depth_first import DepthFirst
from wpk.graph_passes.fold.empty_tensors import EmptyTensors
from wpk.graph_passes.fold.known_results import KnownResults
from wpk.graph_passes.fold.pad_into_window import PadIntoWindow
from wpk.graph_passes.fold.repeated_constants import RepeatedConstants
from wpk.graph_passes.fold.shape_arithmetic import ShapeArithmetic
from wpk.graph_passes.fold.single_elements import SingleElements
from wpk.graph_passes.fusion.casts_before_joins import CastsBeforeJoins
from wpk.graph_passes.fusion.feed_forward import FuseFeedForwards
from wpk.graph_passes.fusion.fuse_operators import FuseOperators
from wpk.graph_passes.fusion.grouped_heads import GroupedHeads
from wpk.graph_passes.fusion.hoist import HoistOverViews
from wpk.graph_passes.fusion.split import SplitBeforeViews
from wpk.graph_passes.fusion.views_before_casts import ViewsBeforeCasts
from wpk.graph_passes.layout.channels_last import ChannelsLast
from wpk.graph_passes.movement.chains.idle_quantisation import IdleQuantisation
from wpk.graph_passes.movement.chains.redundant_movement import RedundantMovement
from wpk.graph_passes.movement.chains.reshape_chains import ReshapeChains
from wpk.graph_passes.movement.gathers.batch_picks import BatchPicks
from wpk.graph_passes.movement.gathers.free_rows import FreeRows
from wpk.graph_passes.movement.gathers.grid_gather import GridGather
from wpk.graph_passes.movement.gathers.identity_gather import IdentityGather
from wpk.graph_passes.movement.gathers.joined_tables import JoinedTables
from wpk.graph_passes.movement.gathers.range_gather import RangeGather
from wpk.graph_passes.movement.gathers.reversed_sequences import ReversedSequences
from wpk.graph_passes.movement.repeats.spread_rows import SpreadRows
from wpk.graph_passes.movement.repeats.tile_views import TileViews
from wpk.graph_passes.movement.repeats.turned_expands import TurnedExpands
from wpk.graph_passes.movement.reshapes.norms_of_groups import NormsOfGroups
from wpk.graph_passes.movement.reshapes.reshapes_around import ReshapesAround
from wpk.graph_passes.movement.reshapes.reshapes_behind import ReshapesBehind
from wpk.graph_passes.movement.reshapes.rows_before_reshapes import RowsBeforeReshapes
from wpk.graph_passes.movement.selections.placed_selections import PlacedSelections
from wpk.graph_passes.movement.selections.pooled_places import PooledPlaces
from wpk.graph_passes.movement.selections.ranked_values import RankedValues
from wpk.graph_passes.movement.selections.triangle_mask import TriangleMask
from wpk.graph_passes.movement.selections.whole_indices import WholeIndices
from wpk.graph_passes.movement.transposes.batch_in_front import BatchInFront
from wpk.graph_passes.movement.transposes.block_movement import BlockMovement
from wpk.graph_passes.movement.transposes.image_rows import ImageRows
from wpk.graph_passes.movement.transposes.merged_transpose import MergedTranspose
from wpk.graph_passes.movement.transposes.places_first import PlacesFirst
from wpk.graph_passes.movement.transposes.transpose_parts import TransposeParts
from wpk.graph_passes.movement.transposes.transposes_behind import TransposesBehind
from wpk.graph_passes.movement.transposes.turned_splits import TurnedSplits
from wpk.graph_passes.movement.windows.blocked_pixels import BlockedPixels
from wpk.graph_passes.movement.windows.moved_rows import MovedRows
from wpk.graph_passes.movement.windows.unfolded_pixels import UnfoldedPixels
from wpk.graph_passes.movement.windows.windows_in_attention import WindowsInAttention
from wpk.graph_passes.precision.set_precision import SetPrecision
from wpk.graph_passes.products.added_parts import AddedParts
from wpk.graph_passes.products.channel_orders import ChannelOrders
from wpk.graph_passes.products.clamp import ClampBeforeProduct
from wpk.graph_passes.products.einsum import EinsumParts
from wpk.graph_passes.products.join_siblings import JoinSiblings
from wpk.graph_passes.products.merged_groups import MergedGroups
from wpk.graph_passes.products.norm_into_product import NormIntoProduct
from wpk.graph_passes.products.part_products import PartProducts
from wpk.graph_passes.products.patch_products import OtherPatchProducts, PatchProducts
from wpk.graph_passes.products.pooling import PoolBehindProduct, PoolIntoProduct
from wpk.graph_passes.products.skewed_products import SkewedProducts
from wpk.graph_passes.products.summed_convolutions import SummedConvolutions
from wpk.graph_passes.products.sums_around import SumsAround
from wpk.graph_passes.products.turned_products import TurnedProducts
from wpk.graph_passes.products.turned_weights import TurnedWeights
from wpk.graph_passes.recognise.gelu import RecognizeGelu
from wpk.graph_passes.recognise.global_pooling import GlobalPooling
from wpk.graph_passes.recognise.hard_swish import RecognizeHardSwish
from wpk.graph_passes.recognise.layer_norm import RecognizeLayerNorm
from wpk.graph_passes.recognise.matmul_to_gemm import GemmBetweenReshapes, MatMulToGemm
from wpk.graph_passes.recognise.rms_norm import RecognizeRmsNorm
from wpk.graph_passes.recognise.rotary import RotaryHalves
from wpk.graph_passes.recognise.sigmoid import RecognizeSigmoid
from wpk.graph_passes.recognise.softmax import RecognizeSoftmax
from wpk.graph_passes.recognise.unit_rows import RecognizeUnitRows
from wpk.graph_passes.recurrent.batch_first import RecurrentBatchFirst
from wpk.graph_passes.recurrent.directions import RecurrentDirections
from wpk.graph_passes.recurrent.operators import RecurrentOperators
from wpk.graph_passes.recurrent.states import RecurrentStates
from wpk.target_features import USUAL, TargetFeatures


def pass_groups(
    precision: Precision,
    changed: Collection[str] = frozenset(),
    features: TargetFeatures = USUAL,
) -> list[list[GraphPass]]:
    """Return new instances of all passes: groups in order, each to be run to a fixpoint.

    Args:
        precision: Written into the graph's types before operators are fused, so that the casts
            become part of them.
        changed: Keys of the sites that are decided otherwise than usually (`wpk.graph_passes.core.sites`).
        features: Of the target.
    """
    groups = _groups(precision, features)
    for each in chain.from_iterable(groups):
        each.changed = changed
    return groups


def _groups(precision: Precision, features: TargetFeatures) -> list[list[GraphPass]]:
    return [
        simplifying_passes(precision.storage),
        [
            PoolIntoProduct(),
            PoolBehindProduct(),
            JoinSiblings(precision.storage),
            ClampBeforeProduct(precision),
            LongRows(clusters=features.clusters),
            NormsOfGroups(),
        ],
        [ChannelOrders(precision.storage)],
        [PartProducts()],
        [TurnedProducts(), WindowsInAttention()],
        [BlockedPixels()],
        [NormIntoProduct(precision.storage)],
        [SetPrecision(precision)],
        [RecurrentOperators(), PlacedSelections()],
        [SpreadRows()],
        [
            SplitBeforeViews(),
            CastsBeforeJoins(),
            HoistOverViews(),
            ViewsBeforeCasts(),
            FuseFeedForwards(precision.storage, warpgroups=features.warpgroups),
            FuseOperators(precision.storage, clusters=features.clusters),
        ],
        [ChannelsLast()],
        [TransposeParts()],
    ]


def simplifying_passes(storage: DType = DType.FP32) -> list[GraphPass]:
    """Return new passes that keep the graph plain ONNX, whose tensors will be stored in ``storage``."""
    return [
        InlineConditionals(),
        CollectedSequences(),
        UnrollLoops(),
        LoopsToScans(),  # of what stays
        ScanAxes(),
        ModernForms(),
        AttentionParts(),
        PlainForms(),
        EinsumParts(),
        DefinedForms(),
        FourierProducts(),
        ResizeParts(),
        ResizeAxes(),
        GridSampleParts(),
        DeformedWindows(),
        WindowParts(),
        TransposedVolumes(),
        ColumnProducts(),
        ColumnParts(),
        UnpoolParts(),
        DepthFirst(),
        BlockMovement(),
        QuantisedProducts(),
        DynamicQuantisation(),
        IdleQuantisation(),
        UnsignedBytes(),
        ByteProducts(),
        QuantisationParts(),
        RecurrentBatchFirst(),
        RecurrentDirections(),
        RecurrentStates(),
        FunctionBodies(),  # of what the passes before leave
        DeadCode(),
        ConstantFolding(),
        KnownResults(),
        EmptyTensors(),
        SingleElements(),
        ShapeArithmetic(),
        SelectConditionals(),  # of conditions that nothing before could know
        RepeatedConstants(),
        IdentityElimination(),
        CastChains(),
        UnfoldedPixels(),
        TurnedExpands(),
        SkewedProducts(),
        SumsAround(),
        AddedParts(),
        IdentityGather(),
        RangeGather(),
        FreeRows(),
        GridGather(),
        BatchPicks(),
        JoinedTables(),
        RankedValues(),
        PooledPlaces(),
        ReversedSequences(),
        WholeIndices(),
        MovedRows(),
        PlacesFirst(),
        TileViews(),
        TriangleMask(),
        CertainMasks(),
        MergedTranspose(),
        ReshapeChains(),
        ReshapesAround(),
        CommonSubexpressions(),
        RecognizeGelu(),
        RecognizeLayerNorm(),
        RecognizeRmsNorm(),
        RecognizeUnitRows(storage),
        RotaryHalves(),
        RecognizeHardSwish(),
        RecognizeSigmoid(),
        RecognizeSoftmax(),
        TurnedWeights(),
        NanGuard(storage),
        GroupedHeads(),
        GlobalPooling(),
        FoldBatchNormAfter(),
        FoldBatchNormBefore(),
        BatchNormToAffine(),
        PadIntoWindow(),
        SummedConvolutions(),
        ScaleIntoProjection(),
        ScaleBehindProduct(),
        TurnedSplits(),
        RowsBeforeReshapes(),
        ImageRows(),
        ReshapesBehind(),
        TransposesBehind(),
        BatchInFront(),  # after the scales, which a transpose would part from their products
        ScaleThroughBias(),
        MatMulToGemm(),
        ConstantsIntoWeights(),
        ConstantsBeforeWeights(),
        ConstantForms(),
        ConstantChains(),
        RedundantMovement(),
        PatchProducts(),
        OtherPatchProducts(),
        MergedGroups(),
        GemmBetweenReshapes(),
    ]
