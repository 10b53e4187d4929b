// Attention by warpgroups (sm_90a): what lies in shared memory, and the producer that brings it.
//
// A block has 64 rows of queries for each of its consumer warpgroups, and walks the keys in steps. Queries come once;
// keys and values have a pipeline each, since the keys of a step are needed before its values, and free sooner.
#pragma once

#include <wpk/kernels/attention/lengths.cuh>
#include <wpk/kernels/wgmma/boxed_rows.cuh>
#include <wpk/kernels/wgmma/group_turns.cuh>
#include <wpk/kernels/wgmma/handed_registers.cuh>
#include <wpk/kernels/wgmma/pipeline.cuh>

namespace wpk
{

// Of AttentionRows and AttentionStaging, too: a warp has keys and rows of its own.
template <class Problem, class Schedule>
struct AttentionGroups : HandedRegisters<Problem, Schedule::warpgroups>
{
    using T = typename Problem::Multiply;
    static constexpr int groups = Schedule::warpgroups, groupRows = 64, groupThreads = 128;
    static constexpr int rows = groups * groupRows, keys = Schedule::block_n, stages = Schedule::stages;
    static constexpr int threads = groups * groupThreads; // that compute
    using Turns = GroupTurns<groups, Schedule::pingpong != 0>;

    using Queries = BoxedRows<rows, Problem::depth>;
    using Keys = BoxedRows<keys, Problem::depth>;
    using Values = BoxedRows<keys, Problem::width>;
    using Barriers = PipelineBarriers<stages, threads / kWarpSize>;
    static constexpr int warpsN = 1, blockN = keys, pairsN = keys / 16, pairsD = Values::slices;
    static constexpr bool exactWeights = false, foldsScale = true;
    static constexpr int stagingStride = pairsD * 16 + 8; // floats; 8 more keep writes free of conflicts
    static constexpr int stagingBytes = rows * (2 + stagingStride) * 4;
    static constexpr int stageBytes = Keys::bytes + Values::bytes;
    // Never over barriers, as WgmmaPipeline says.
    static constexpr int barriersAt = maxOf(Queries::bytes + stages * stageBytes, stagingBytes);
    static constexpr int sharedBytes = barriersAt + 2 * Barriers::kBytes + 8 + Turns::kBytes;
};

// Where a block's tiles and barriers lie.
template <class Shape>
struct AttentionPipelines
{
    using Barriers = typename Shape::Barriers;
    SharedAddress shared;
    Barriers keys, values;
    typename Shape::Turns turns;

    WPK_DEVICE explicit AttentionPipelines(SharedAddress shared)
        : shared(shared),
          keys{shared + Shape::barriersAt},
          values{keys.barriers + Barriers::kBytes},
          turns{values.barriers + Barriers::kBytes + 8}
    {
    }

    WPK_DEVICE void init() const
    {
        keys.init();
        values.init();
        initBarrier(queriesThere(), 1);
        turns.init();
        fenceBarrierInit();
    }
    WPK_DEVICE SharedAddress queriesThere() const
    {
        return shared + Shape::barriersAt + 2 * Barriers::kBytes;
    }

    WPK_DEVICE SharedAddress queryTile() const
    {
        return shared;
    }
    WPK_DEVICE SharedAddress queryRows(int group) const
    {
        return queryTile() + group * (Shape::groupRows * Shape::Queries::swizzle); // @rows_of_consumer
    }
    WPK_DEVICE SharedAddress keyTile(int stage) const
    {
        return shared + Shape::Queries::bytes + stage * Shape::stageBytes;
    }
    WPK_DEVICE SharedAddress valueTile(int stage) const
    {
        return keyTile(stage) + Shape::Keys::bytes;
    }
};

// The producer, one thread: queries, then the keys and values of each step as soon as their stages are empty. Where
// matrices or heads are broadcast there is one of them.
template <class Problem, class Shape>
WPK_DEVICE void produceAttention(
    const AttentionPipelines<Shape>& pipelines, const TensorMaps<3>& maps, const AttentionPlace& at, int steps)
{
    const auto matrixOf = [&](bool isBroadcast)
    {
        return isBroadcast ? 0 : at.matrix;
    };
    const int head = at.head, shared = head / Problem::sharing; // @head_shared
    arriveExpectBytes(pipelines.queriesThere(), Shape::Queries::copiedBytes);
    Shape::Queries::copy(pipelines.queryTile(), maps.at[0], pipelines.queriesThere(), at.block * Shape::rows,
        Problem::q_head ? head : 0, matrixOf(!Problem::q_outer));
    PipelineState<Shape::stages> state;
    WPK_KEEP_LOOP
    for (int step = 0; step < steps; ++step)
    {
        const int stage = state.stage, row = step * Shape::keys;
        pipelines.keys.acquire(stage, state.phase ^ 1, Shape::Keys::copiedBytes);
        Shape::Keys::copy(pipelines.keyTile(stage), maps.at[1], pipelines.keys.full(stage), row,
            Problem::k_head ? shared : 0, matrixOf(!Problem::k_outer));
        pipelines.values.acquire(stage, state.phase ^ 1, Shape::Values::copiedBytes);
        Shape::Values::copy(pipelines.valueTile(stage), maps.at[2], pipelines.values.full(stage), row,
            Problem::v_head ? shared : 0, matrixOf(!Problem::v_outer));
        state.advance();
    }
}

} // namespace wpk
