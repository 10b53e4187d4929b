// A feed-forward block by warpgroups (sm_90a): what lies in shared memory, and the producer that brings it.
//
// A tile is 64 rows for each consumer warpgroup of a block, which come and go by themselves: warpgroups need not begin
// a tile together, so one stores while others multiply. The hidden columns are walked in steps, of each of which both
// weights are rows: of the first one what makes these columns, of the second one what they are multiplied by. Where
// there are as many stages as steps, weights come once and stay; else they come again for every tile.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/wgmma/block_tiles.cuh>
#include <wpk/kernels/wgmma/boxed_rows.cuh>
#include <wpk/kernels/wgmma/group_turns.cuh>
#include <wpk/kernels/wgmma/handed_registers.cuh>
#include <wpk/kernels/wgmma/pipeline.cuh>

namespace wpk
{

// The second product, as what stores a tile sees a problem: its rows are multiplied as they are.
template <class Problem>
struct OutputColumns
{
    using Y = typename Problem::Y;
    using Operands = typename Problem::Operands;
    using Epilogue = typename Problem::Epilogue;
    static constexpr int n = Problem::n, y_padding = Problem::y_padding;
};

template <class Problem, class Schedule>
struct FeedForwardShape
    : HandedRegisters<Problem, Schedule::warpgroups>,
      Warpgroups<typename Problem::Multiply, Schedule::warpgroups * 64, ceilDivide(Problem::n, 16) * 16, Problem::k>
{
    using T = typename Problem::Multiply;
    using Groups = Warpgroups<T, Schedule::warpgroups * 64, ceilDivide(Problem::n, 16) * 16, Problem::k>;
    static constexpr int rows = Schedule::warpgroups * 64, columns = Schedule::block_n;
    static constexpr int stages = Schedule::stages, rowStages = Schedule::row_stages;
    static constexpr int steps = ceilDivide(Problem::hidden, columns);
    static constexpr bool isResident = stages == steps;
    static constexpr int threads = Groups::consumers; // that compute

    using RowTile = BoxedRows<64, Problem::k, kTightSwizzle<Problem::k>>; // of a warpgroup
    using UpTile = BoxedRows<columns, Problem::k, kTightSwizzle<Problem::k>>;
    using DownTile = BoxedRows<columns, Problem::n, kTightSwizzle<Problem::n>>;
    using RowBarriers = PipelineBarriers<rowStages, 4>; // of a warpgroup
    using Barriers = PipelineBarriers<stages, threads / kWarpSize>;
    using Turns = GroupTurns<Schedule::warpgroups, Schedule::pingpong != 0>;

    // As FetchedTiles sees the columns that are staged at once: the memory lies beside the tiles.
    using Staged = StackedWarps<Groups::warpsM, stagedAtOnce(Groups::blockN, 32)>;
    static constexpr bool byColumns = kStoresByColumns<OutputColumns<Problem>>;
    static constexpr int stagedBytes = byColumns ? columnStagingBytes(Groups::blockN) : Staged::stagingBytes;

    static constexpr int groups = Schedule::warpgroups;
    static constexpr int upAt = rowStages * groups * RowTile::bytes, downAt = upAt + stages * UpTile::bytes;
    static constexpr int stagingAt = downAt + stages * DownTile::bytes;
    static constexpr int barriersAt = stagingAt + Groups::warpsM * stagedBytes;
    static constexpr int sharedBytes = barriersAt + groups * RowBarriers::kBytes + 2 * Barriers::kBytes + Turns::kBytes;
};

// Where a block's tiles and barriers lie.
template <class Shape>
struct FeedForwardPipelines
{
    SharedAddress shared;
    typename Shape::Barriers up, down;
    typename Shape::Turns turns;

    WPK_DEVICE explicit FeedForwardPipelines(SharedAddress shared)
        : shared(shared),
          up{shared + Shape::barriersAt + Shape::groups * Shape::RowBarriers::kBytes},
          down{up.barriers + Shape::Barriers::kBytes},
          turns{down.barriers + Shape::Barriers::kBytes}
    {
    }

    WPK_DEVICE void init() const
    {
        WPK_UNROLL
        for (int group = 0; group < Shape::groups; ++group)
            rows(group).init();
        up.init();
        down.init();
        turns.init();
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
    WPK_DEVICE SharedAddress upTile(int stage) const
    {
        return shared + Shape::upAt + stage * Shape::UpTile::bytes;
    }
    WPK_DEVICE SharedAddress downTile(int stage) const
    {
        return shared + Shape::downAt + stage * Shape::DownTile::bytes;
    }
};

// What a warp of the producer brings, whose first thread calls it: weights of the first steps, which no kernel writes,
// perhaps before kernels in front have ended; then the rows of each tile, and its weights, as soon as their stages are
// empty. A producer that is a whole warpgroup has a warp for the rows of each consumer warpgroup, so that none waits
// for rows since another one is behind, and one for the weights.
template <class Schedule, class Shape>
class FeedForwardProducer
{
public:
    static constexpr int kOfWeights =
        Shape::threads + (Shape::handsRegisters ? Shape::groups : 0) * kWarpSize; // thread

    WPK_DEVICE FeedForwardProducer(const FeedForwardPipelines<Shape>& pipelines, const TensorMaps<3>& maps)
        : pipelines_(pipelines), maps_(maps)
    {
    }

    // By the thread of the weights.
    WPK_DEVICE void bringFirst()
    {
        WPK_KEEP_LOOP
        for (int step = 0; step < kFirst; ++step)
            bringWeights(step);
    }

    // Behind whatever waits for kernels in front.
    WPK_DEVICE void run(BlockTiles<Shape> tiles)
    {
        const bool bringsWeights = threadIdx.x == kOfWeights;
        const int warp = warpIndex() - Shape::warpsM;
        const int firstGroup = Shape::handsRegisters ? warp : 0; // @producers_told
        const int groupEnd = Shape::handsRegisters ? minOf(warp + 1, Shape::groups) : Shape::groups;
        int step = kFirst;
        PipelineState<Shape::rowStages> state;
        WPK_KEEP_LOOP
        for (; !tiles.isDone(); tiles.advance())
        {
            WPK_KEEP_LOOP
            for (int group = firstGroup; group < groupEnd; ++group)
            {
                const auto rows = pipelines_.rows(group);
                rows.acquire(state.stage, state.phase ^ 1, Shape::RowTile::copiedBytes);
                Shape::RowTile::copy(pipelines_.rowTile(group, state.stage), maps_.at[0], rows.full(state.stage),
                    tiles.firstRow() + group * 64); // @group_placed
            }
            state.advance();
            WPK_KEEP_LOOP
            for (; bringsWeights && step < Shape::steps; ++step) // @more_weights
                bringWeights(step);
            step = Shape::isResident ? Shape::steps : 0; // @weights_again
        }
        if (firstGroup < groupEnd)
            releaseIfEarly<Schedule>(); // all is asked for, of its rows
    }

private:
    static constexpr int kFirst = minOf(Shape::stages, Shape::steps);

    WPK_DEVICE void bringWeights(int step)
    {
        using Up = typename Shape::UpTile;
        using Down = typename Shape::DownTile;
        const int stage = weights_.stage, phase = weights_.phase ^ 1, row = step * Shape::columns;
        pipelines_.up.acquire(stage, phase, Up::copiedBytes);
        Up::copy(pipelines_.upTile(stage), maps_.at[1], pipelines_.up.full(stage), row);
        pipelines_.down.acquire(stage, phase, Down::copiedBytes);
        Down::copy(pipelines_.downTile(stage), maps_.at[2], pipelines_.down.full(stage), row);
        weights_.advance();
    }

    const FeedForwardPipelines<Shape>& pipelines_;
    const TensorMaps<3>& maps_;
    PipelineState<Shape::stages> weights_;
};

} // namespace wpk
