// A product of many rows by a weight that stays (sm_90a): what lies in a block's shared memory.
//
// The weight comes once, as tiles of the columns that are multiplied in a step. Each warpgroup has tiles of 64 rows of
// its own, all of their elements, and brings them itself: none waits for another one.
#pragma once

#include <wpk/kernels/wgmma/block_tiles.cuh>
#include <wpk/kernels/wgmma/boxed_rows.cuh>
#include <wpk/kernels/wgmma/pipeline.cuh>

namespace wpk
{

template <class Problem, class Schedule>
struct ThinShape : Warpgroups<typename Problem::Multiply, Schedule::warpgroups * 64, Schedule::block_n, Problem::k>
{
    using Groups = Warpgroups<typename Problem::Multiply, Schedule::warpgroups * 64, Schedule::block_n, Problem::k>;
    static constexpr int groups = Schedule::warpgroups, rows = groups * 64; // of a block's tile
    static constexpr int groupThreads = Groups::kGroupWarps * kWarpSize, threads = groups * groupThreads;
    static constexpr int columns = Schedule::block_n; // of a step
    static constexpr int steps = ceilDivide(Problem::n + Problem::y_padding, columns);
    static constexpr int rowStages = Schedule::row_stages;
    static constexpr bool ahead = Schedule::ahead != 0;

    using RowTile = BoxedRows<64, Problem::k, kTightSwizzle<Problem::k>>; // of a warpgroup
    using WeightTile = BoxedRows<columns, Problem::k, kTightSwizzle<Problem::k>>;
    using RowBarriers = PipelineBarriers<rowStages, Groups::kGroupWarps>; // of a warpgroup

    // As storeTilesInLoop sees the columns that are staged at once, whose operands are asked for at once: the memory
    // lies beside the tiles.
    static constexpr int unit = kStoresMoments<Problem> ? momentsGroup(Problem::n) : 16;
    using Staged = StackedWarps<Groups::warpsM, stagedAtOnce(columns, 96, unit)>;
    static constexpr bool byColumns = kStoresByColumns<Problem>;
    static constexpr int stagedBytes = byColumns ? columnStagingBytes(columns) : Staged::stagingBytes;

    static constexpr int weightAt = rowStages * groups * RowTile::bytes;
    static constexpr int stagingAt = weightAt + steps * WeightTile::bytes;
    static constexpr int barriersAt = stagingAt + Groups::warpsM * stagedBytes;
    static constexpr int sharedBytes = barriersAt + groups * RowBarriers::kBytes + 8;
};

// Where a block's tiles and barriers lie.
template <class Shape>
struct ThinMemory
{
    SharedAddress shared;

    WPK_DEVICE void init() const
    {
        WPK_UNROLL
        for (int group = 0; group < Shape::groups; ++group)
            rows(group).init();
        initBarrier(weight(), 1);
        fenceBarrierInit();
    }
    WPK_DEVICE typename Shape::RowBarriers rows(int group) const
    {
        return {shared + Shape::barriersAt + group * Shape::RowBarriers::kBytes};
    }
    WPK_DEVICE SharedAddress rowTile(int group, int stage) const
    {
        return shared + (stage * Shape::groups + group) * Shape::RowTile::bytes; // @rows_of_group
    }
    WPK_DEVICE SharedAddress weightTile(int step) const
    {
        return shared + Shape::weightAt + step * Shape::WeightTile::bytes;
    }

    // One thread asks for all of the weight, which no kernel writes.
    WPK_DEVICE void bringWeight(const TensorMap* map) const
    {
        using Tile = typename Shape::WeightTile;
        arriveExpectBytes(weight(), Shape::steps * Tile::copiedBytes);
        WPK_KEEP_LOOP
        for (int step = 0; step < Shape::steps; ++step)
            Tile::copy(weightTile(step), map, weight(), step * Shape::columns); // @columns_of_weight
    }
    // A whole warp waits until it has come.
    WPK_DEVICE void awaitWeight() const
    {
        waitBarrier(weight(), 0); // @weight_awaited
        __syncwarp();
    }

private:
    WPK_DEVICE SharedAddress weight() const
    {
        return shared + Shape::barriersAt + Shape::groups * Shape::RowBarriers::kBytes;
    }
};

} // namespace wpk
