// Squeeze and excitation: the mean of each channel, two products of that one row, and what the gates scale.
//
// The `blocks` of a cluster share an image. Block b has slice b of the channels: it pools them, multiplies them by
// its columns of `down` (all rows: a part of each hidden sum), sends its parts to all blocks and adds theirs, and
// multiplies the hidden row, which every block then has, by its rows of `up`: the gates of slice b. These scale the
// channels of slice b, so that blocks meet once. Where the schedule pools by pixels, block b reads all channels of
// part b of the pixels, which is what few channels and many pixels want; blocks then meet twice more.
//
// Blocks meet by stores into each other's shared memory, to places that nothing else uses; of each meeting a barrier of
// the block counts their bytes. A barrier of the cluster would take a fence of all memory, and loads from other blocks
// behind it (docs/decisions/0066-sent-parts.md).
//
// Weights are constants: where the schedule stages them, they are on their way to shared memory before the kernel in
// front has ended. Operands of the rows are loaded before they are needed, since each meeting is a latency already.
// Where the schedule keeps the images, copies to shared memory bring all that a block pools at once, and what it scales
// is there already.
//
// Channels are handled in runs of 8; rows of the weights have whole runs, with zeros behind the row.
//
// Problem: X over (leading, pixel, channel), or (leading, channel, pixel) where pixelsFastest; Y and Scaled over
// (leading, place, k), or (leading, k, place) where placesFastest; Down and Up over (row, column); Hidden and Gates:
// operands over (leading, row); MeansOf, HiddenOf, GatesOf, ScaledOf: expressions; c, pixels, hidden, k, places;
// rowPadding: zeros that follow y's channels.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/squeeze/pooling.cuh>
#include <wpk/kernels/squeeze/products.cuh>
#include <wpk/kernels/squeeze/scaling.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void squeeze(
    Inputs<3 + Problem::Hidden::count + Problem::Gates::count + Problem::Scaled::count> inputs, int n, void* y)
{
    using Block = detail::SqueezeBlock<Problem, Schedule>;
    WPK_SHARED(float, shared);
    (void)n; // the grid has as many clusters
    Block block;
    block.inputs = inputs.at;
    block.shared = shared;
    block.thread = static_cast<int>(threadIdx.x);
    block.rank = Schedule::blocks > 1 ? clusterRank() : 0;
    block.image = static_cast<int>(blockIdx.x) / Schedule::blocks;
    releaseIfEarly<Schedule>();
    if constexpr (Schedule::blocks > 1)
        block.prepareMeetings();
    if constexpr (Block::Shape::isStaged)
        detail::stageWeights(block);
    if constexpr (Schedule::blocks > 1)
        waitCluster(); // @meetings_prepared
    waitIfEarly<Schedule>();
    detail::loadOperands(block);
    if constexpr (Block::Shape::isKept)
        detail::keepImages(block);
    detail::poolImages(block);
    detail::finishMeans(block);
    detail::multiplyDown(block);
    detail::multiplyUp(block);
    detail::scaleImages(block, y);
}

} // namespace wpk
