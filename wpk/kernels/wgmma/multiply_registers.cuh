// The consumers' loop with A in registers (sm_90a): a warp loads its rows of A from the pipeline, and keeps them
// between the limits of their channels.
#pragma once

#include <wpk/kernels/mma/channel_limits.cuh>
#include <wpk/kernels/wgmma/multiply.cuh>

namespace wpk
{

// Steps of products in the 128 bytes of a box's rows.
inline constexpr int kBoxSteps = 4;

// A warp's rows of a box of A, kept between their channels' limits. Those of the next box come meanwhile.
template <class T, int Slices, class Limits>
WPK_DEVICE void loadLimited(uint32 (&values)[Slices][4], SharedAddress tile, typename Limits::Step (&kept)[Slices],
    const Limits& limits, int nextBox)
{
    const int row = warpIndex() * 16 + laneIndex() % 16, chunk = laneIndex() / 16; // @rows_loaded
    WPK_UNROLL
    for (int slice = 0; slice < Slices; ++slice)
    {
        loadMatrix4(values[slice], tile + SwizzledTile<128>::offset(row, slice * 2 + chunk));
        auto& fragment = reinterpret_cast<uint32(&)[1][4]>(values[slice]);
        Limits::template keepFragments<T>(fragment, kept[slice]);
    }
    limits.template load<T, kBoxSteps>(kept, nextBox * kBoxSteps);
}

// acc += A * B over a warpgroup's rows of `count` steps, from `state` on, where A has limits: a warp loads its rows of
// a box during the products of the box before in this step. A stage is released after it, but for the last. None of a
// step's products is left to the next one: around the loop ptxas takes registers that products still read for others.
// The first box is `firstBox` of the reduction.
template <class T, class Shape, class Limits>
WPK_DEVICE void multiplyFromRegisters(float (&acc)[Shape::accumulators], const WgmmaPipeline<Shape>& pipeline,
    PipelineState<Shape::stages>& state, int count, const Limits& limits, int firstBox)
{
    uint32 rows[2][Shape::slices][4] = {};
    typename Limits::Step kept[Shape::slices];
    limits.template load<T, kBoxSteps>(kept, firstBox * kBoxSteps);
    WPK_KEEP_LOOP
    for (int step = 0; step < count; ++step)
    {
        pipeline.wait(state);
        WPK_UNROLL
        for (int box = 0; box < Shape::boxes; ++box)
        {
            const SharedAddress tile = pipeline.tileA(state.stage) + box * Shape::boxBytesA;
            loadLimited<T>(rows[box % 2], tile, kept, limits, firstBox + step * Shape::boxes + box + 1);
            const uint64 b = describeB<Shape>(pipeline.tileB(state.stage));
            fenceWgmma();
            WPK_UNROLL
            for (int slice = 0; slice < Shape::slices; ++slice)
                wgmma<T, Shape::majorB>(acc, rows[box % 2][slice], b + sliceOfB<Shape>(box, slice), 1);
            commitWgmma();
            if (box + 1 == Shape::boxes)
                break;
            waitWgmma<1>(); // for the products of the box before
            keepUntilHere(rows[(box + 1) % 2]);
        }
        waitWgmma<0>(acc);
        keepUntilHere(rows[0]);
        if (Shape::boxes > 1)
            keepUntilHere(rows[1]);
        if (step + 1 < count)
            pipeline.release(state.stage);
        state.advance();
    }
}

} // namespace wpk
