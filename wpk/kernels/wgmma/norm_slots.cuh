// Where a product's rows are normalised (norm_rows.cuh): what the warps that take their moments hand to consumers.
//
// A slot belongs to a stage of the pipeline, and what it holds to the tile whose last step that stage has: of each row
// its mean and scale, of each column the sum of B's. It is free again when the stage is released. Its barrier completes
// a phase in each round of the pipeline.
#pragma once

#include <wpk/kernels/mbarrier.cuh>
#include <wpk/kernels/wgmma/shape.cuh>

namespace wpk
{

template <class Shape>
struct NormSlots
{
    SharedAddress slots;
    static constexpr bool kAreThere = Shape::momentWarps != 0;
    static constexpr int kBarrierBytes = 16, kSumsAt = kBarrierBytes + Shape::blockM * 8;
    static constexpr int kSlotBytes = kSumsAt + Shape::blockN * 4;
    static constexpr int kBytes = kAreThere ? Shape::stages * kSlotBytes : 0;

    WPK_DEVICE SharedAddress barrier(int stage) const
    {
        return slots + stage * kSlotBytes;
    }

    // Behind it stands fenceBarrierInit.
    WPK_DEVICE void init() const
    {
        if constexpr (kAreThere)
        {
            WPK_UNROLL
            for (int stage = 0; stage < Shape::stages; ++stage)
                initBarrier(barrier(stage), Shape::momentWarps); // @moments_counted
        }
    }

    // A warp has written all that it writes in this round.
    WPK_DEVICE void handOver(int stage) const
    {
        if (laneIndex() == 0)
            arriveBarrier(barrier(stage));
    }
    // A whole warp waits for what others have written.
    WPK_DEVICE void await(int stage, int phase) const
    {
        waitBarrier(barrier(stage), phase); // @moments_awaited
    }
};

} // namespace wpk
