// Convolution by warpgroups over filters and patches kept in shared memory (tile_halo.cuh, sm_90a).
//
// Grid: teams' tiles of output pixels of all images, or persistent blocks, which compute them one after another; tiles
// of a group's filters; groups. Problem and Schedule are named by conv_halo.py; maps: the input's (channel, w, h,
// image), the filters' (channel, tap, filter). A group's channels are whole patches' 128 bytes, or whole products of
// one patch: then it holds its neighbours' channels, too, which nobody multiplies.
#pragma once

#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/operands/operands.cuh>
#include <wpk/kernels/wgmma/tile_halo.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void convHalo(Inputs<2 + Problem::Operands::count> inputs, int n, const TensorMaps<2>& maps, void* y)
{
    using T = typename Problem::Multiply;
    using Shape = HaloShape<T, Problem, Schedule>;
    constexpr int kConsumers = Shape::teams * Shape::warpsM; // warps
    constexpr bool kEarly = Schedule::early != 0;
    WPK_SHARED(unsigned char, shared);
    static_assert(Schedule::shared_bytes == HaloMemory<Shape>::kBytes, "Python and C++ count the same shared memory");

    const HaloMemory<Shape> memory{sharedAddress(shared)};
    const int group = Problem::groups == 1 ? 0 : static_cast<int>(blockIdx.z);
    const int filters = (group + 1) * Problem::k; // up to the group's last
    const int stored = group + 1 == Problem::groups ? filters + Problem::y_padding : filters;
    const int firstFilter = group * Problem::k + static_cast<int>(blockIdx.y) * Shape::blockN; // @filters_of_group
    const bool isConsumer = warpIndex() < kConsumers;
    const int team = isConsumer ? warpIndex() / Shape::warpsM : warpIndex() - kConsumers;
    const bool isProducer = !isConsumer && laneIndex() == 0;
    TeamTiles<Problem, Schedule> tiles(team, n);
    if (isProducer && team == 0)
    {
        memory.init(); // @barriers_begun
        prefetchTensorMap(maps.at[0]);
        prefetchTensorMap(maps.at[1]);
        askForFilters(memory, maps.at[1], firstFilter);
    }
    const auto window = [=](const decltype(tiles.tile())& tile)
    {
        return OutputWindow{tile, inputs.at + 2, y, Shape::kPixels, filters, stored}.from(0, firstFilter);
    };
    if (isConsumer && !tiles.isDone())
    {
        constexpr int kTeam = Shape::warpsM * kWarpSize; // threads
        prefetchTileConstants<Problem, Shape::kPixels, Shape::blockN, kTeam>(
            window(tiles.tile()), static_cast<int>(threadIdx.x) - team * kTeam);
    }
    __syncwarp();    // the producer's lanes took different ways
    __syncthreads(); // @barriers_there
    if (kEarly)      // @previous_awaited
        waitForPrevious();
    if (isProducer)
    {
        feedTeam<Problem>(memory, maps.at[0], group * Problem::c, team, tiles); // @channels_of_group
        if (kEarly)
            releaseNext();
    }
    if (!isConsumer)
        return;
    const PatchRows<Problem, Schedule, Shape> rows;
    PipelineState<Shape::patches> state;
    WPK_KEEP_LOOP
    for (; !tiles.isDone(); tiles.advance())
    {
        float acc[Shape::accumulators] = {}; // @sums_begun
        multiplyPatches<T, Problem>(acc, memory, team, rows, state);
        // Rows are counted from the first warp of the block on; the team's first has pixel 0.
        const auto ofTeam = window(tiles.tile()).from(-team * Shape::warpsM * 16, 0); // @rows_of_team
        NoResidual residual;
        storeTilesInLoop<Problem, Shape>(acc, shared + memory.kStagingAt, ofTeam, residual, 0); // @sums_staged
    }
}

} // namespace wpk
