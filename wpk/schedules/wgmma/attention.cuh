// Attention by warpgroups (sm_90a): softmax(s(Q K^T)) V in one kernel, without the scores in memory.
//
// A block has 64 rows of queries of one matrix for each of its one to three consumer warpgroups
// (attention_group.cuh), and a producer, which TMA feeds them from (attention_tiles.cuh). Two of its warpgroups, or two
// blocks of an SM, compute exponentials while the other ones multiply.
//
// Problem and Schedule are named by attention.py, most of Problem by ../views/attention.py; maps: of Q, K and V, each
// (column, row, head, matrix).
#pragma once

#include <wpk/kernels/attention/staging.cuh>
#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/barriers/named_barrier.cuh>
#include <wpk/kernels/wgmma/attention_group.cuh>

namespace wpk
{

template <class Problem, class Schedule, class Lengths>
WPK_DEVICE void attentionByGroups(
    const AttentionInputs<Problem>& inputs, const Lengths& lengths, const TensorMaps<3>& maps, void* y)
{
    using Shape = AttentionGroups<Problem, Schedule>;
    WPK_SHARED(unsigned char, shared);
    static_assert(Schedule::shared_bytes == Shape::sharedBytes, "Python and C++ count the same shared memory");
    const AttentionPipelines<Shape> pipelines(sharedAddress(shared));
    const AttentionPlace at = lengths.template place<Shape::rows>(static_cast<int64>(blockIdx.x));
    const int steps = (lengths.keys() - 1) / Shape::keys + 1;
    const bool isConsumer = warpIndex() < Shape::threads / kWarpSize;
    if (threadIdx.x == Shape::threads)
    {
        pipelines.init();
        WPK_UNROLL
        for (int map = 0; map < 3; ++map)
            prefetchTensorMap(maps.at[map]);
    }
    if (isConsumer)
        prefetchBiases<Problem, Shape>(inputs.at + 3, lengths, at, Shape::stages);
    __syncwarp();
    __syncthreads();         // @barriers_ready
    waitIfEarly<Schedule>(); // @previous_awaited
    if (!isConsumer)
    {
        Shape::release();
        if (threadIdx.x == Shape::threads)
        {
            produceAttention<Problem>(pipelines, maps, at, steps);
            releaseIfEarly<Schedule>(); // all is asked for
        }
        return;
    }
    Shape::claim();
    AttentionGroup<Problem, Shape, Lengths> group{{lengths}};
    group.run(pipelines, inputs.at + 3, at, steps);
    syncThreads(1, Shape::threads); // @tiles_free, for the staging
    const AttentionStaging<Shape> staging{reinterpret_cast<float*>(shared)};
    staging.put(group);
    syncThreads(1, Shape::threads); // @rows_staged
    storeAttention<Problem>(staging, inputs.at, y, lengths, at.matrix, at.head, at.block * Shape::rows);
}

template <class Problem, class Schedule>
WPK_DEVICE void attentionWgmma(AttentionInputs<Problem> inputs, int n, const TensorMaps<3>& maps, void* y)
{
    attentionByGroups<Problem, Schedule>(inputs, typename Problem::Lengths{}, maps, y);
}

template <class Problem, class Schedule>
WPK_DEVICE void attentionWgmma(
    AttentionInputs<Problem> inputs, int n, int queries, int keys, const TensorMaps<3>& maps, void* y)
{
    attentionByGroups<Problem, Schedule>(inputs, FreeLengths<Problem>(queries, keys), maps, y);
}

} // namespace wpk
