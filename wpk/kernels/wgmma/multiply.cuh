// The consumers' loop over the steps of a tile (sm_90a): a warpgroup multiplies its rows as tiles arrive.
//
// D[row][column] += sum over k of A[row][k] * B[column][k]. B is read from shared memory, and A too: the SS form of
// wgmma in CUTLASS's words. Where A has limits, or fp32 is split into parts of tf32, A goes through registers: the RS
// form (multiply_registers.cuh, multiply_fp32.cuh).
#pragma once

#include <wpk/kernels/wgmma/norm_rows.cuh>
#include <wpk/kernels/wgmma/pipeline.cuh>

namespace wpk
{

// Of B's tile: descriptors count bytes in 16s.
template <class Shape>
WPK_DEVICE uint64 describeB(SharedAddress tile)
{
    if constexpr (Shape::majorB == Major::k)
    {
        return swizzledDescriptor<128>(tile);
    }
    else
    {
        return matrixDescriptor<128>(tile, Shape::boxBytesB, 8 * Shape::kBoxRowBytes);
    }
}
template <class Shape>
WPK_DEVICE constexpr int sliceOfB(int box, int slice)
{
    if (Shape::majorB == Major::k)
        return (box * Shape::boxBytesB + slice * 32) / 16;
    return (box * Shape::kBoxDepth + slice * 16) * Shape::kBoxRowBytes / 16;
}

// acc += A * B over a warpgroup's rows of `count` steps, from `state` on. The products of a step run while those of the
// next one are started; then its stage is released, but for the last. `rows` are brought in front of the products of a
// few boxes, and added while these run (norm_rows.cuh). `started` is called when all products are under way.
template <class T, class Shape, class Rows, class Started>
WPK_DEVICE void multiplyFromShared(typename Shape::Sum (&acc)[Shape::accumulators],
    const WgmmaPipeline<Shape>& pipeline, PipelineState<Shape::stages>& state, int count, Rows& rows,
    const Started& started)
{
    constexpr int kProductBytes = Shape::kProductRows * Shape::kBoxRowBytes;
    constexpr int kProducts = Shape::kGroupRows / Shape::kProductRows; // one below the other
    constexpr int kTogether = minOf(Rows::kTogether, Shape::boxes);
    auto& sums = reinterpret_cast<typename Shape::Sum(&)[kProducts][Shape::blockN / 2]>(acc);
    const int groupRows = Shape::pingpong ? 0 : warpIndex() / Shape::kGroupWarps * kProductBytes; // @rows_of_group
    int previous = 0;
    WPK_KEEP_LOOP
    for (int step = 0; step < count; ++step)
    {
        pipeline.wait(state);
        const SharedAddress tile = pipeline.tileA(state.stage) + groupRows;
        const uint64 a = swizzledDescriptor<128>(tile);
        const uint64 b = describeB<Shape>(pipeline.tileB(state.stage));
        WPK_UNROLL
        for (int first = 0; first < Shape::boxes; first += kTogether)
        {
            rows.bring(tile, first);
            fenceWgmma(); // @products_fenced
            WPK_UNROLL
            for (int box = first; box < first + kTogether; ++box)
            {
                WPK_UNROLL
                for (int slice = 0; slice < Shape::slices; ++slice)
                {
                    WPK_UNROLL
                    for (int product = 0; product < kProducts; ++product)
                    {
                        const int begin = box * Shape::boxBytesA + product * kProductBytes; // @rows_of_product
                        wgmma<T, Major::k, Shape::majorB>(
                            sums[product], a + (begin / 16 + slice * 2), b + sliceOfB<Shape>(box, slice), 1);
                    }
                }
            }
            if (first + kTogether == Shape::boxes)
                commitWgmma();
            rows.add(step, first);
        }
        waitWgmma<1>();
        if (step > 0)
            pipeline.release(previous); // @stage_released
        previous = state.stage;
        state.advance();
    }
    started();
    rows.finish();
    waitWgmma<0>(acc); // @products_awaited
}

} // namespace wpk
