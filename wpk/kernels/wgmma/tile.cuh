// A block's matrix product by warpgroups (sm_90a): one or two of them, each with 64 rows, multiply the tiles of a ring
// (wgmma_ring.cuh) as they arrive.
//
// D[row][column] += sum over k of A[row][k] * B[column][k]. The last warp of the block is the producer: its first lane
// asks for tiles, and waits for a slot until every other warp has multiplied what lay there.
#pragma once

#include <wpk/kernels/cluster_sum.cuh>
#include <wpk/kernels/split_k.cuh>
#include <wpk/kernels/wgmma/registers.cuh>

namespace wpk
{

// acc += A * B over a warpgroup's rows of `count` tiles, from `place` on. The products of a tile run while those of the
// next one are started; then its slot is given back, but for the last.
template <class T, class Shape>
WPK_DEVICE void multiplyWgmmaRing(
    float (&acc)[Shape::accumulators], const WgmmaRing<Shape>& ring, RingPlace<Shape::stages>& place, int count)
{
    const int groupRows = warpIndex() / Shape::kGroupWarps * (Shape::kGroupRows * Shape::kBoxRowBytes); // @group_rows
    int previous = 0;
    WPK_KEEP_LOOP
    for (int step = 0; step < count; ++step)
    {
        waitBarrier(ring.full(place.slot), place.parity); // @tiles_awaited
        __syncwarp();                                     // products are asked for by whole warps
        const uint64 a = swizzledDescriptor<128>(ring.tileA(place.slot) + groupRows);
        const uint64 b = describeB<Shape>(ring.tileB(place.slot));
        fenceWgmma(); // @products_fenced
        WPK_UNROLL
        for (int box = 0; box < Shape::boxes; ++box)
        {
            WPK_UNROLL
            for (int slice = 0; slice < Shape::slices; ++slice)
                wgmma<T, Major::k, Shape::majorB>(
                    acc, a + (box * Shape::boxBytesA / 16 + slice * 2), b + sliceOfB<Shape>(box, slice), 1);
        }
        commitWgmma();
        waitWgmma<1>();
        if (step > 0)
            ring.release(previous); // @slot_released
        previous = place.slot;
        place.advance();
    }
    waitWgmma<0>(acc); // @products_done
}

// The same by what the operands need, over the steps of `range`; `place` goes on. ConstantB: no kernel writes B. All
// consumers call it.
template <class T, class Shape, bool ConstantB, class Range, class Limits>
WPK_DEVICE void multiplyRing(float (&acc)[Shape::accumulators], unsigned char* shared, const WgmmaRing<Shape>& ring,
    RingPlace<Shape::stages>& place, const Range& range, const Limits& limits)
{
    if constexpr (Shape::isSplit)
    {
        multiplySplitRing<ConstantB>(acc, shared, ring, place, range.count, limits, range.first * Shape::boxes);
    }
    else if constexpr (!isSame<Limits, NoLimits>)
    {
        multiplyLimitedRing<T>(acc, ring, place, range.count, limits, range.first * Shape::boxes);
    }
    else
    {
        multiplyWgmmaRing<T, Shape>(acc, ring, place, range.count);
    }
}

// Multiplies the tiles of this block's part of the reduction. Behind it `shared` is free. All threads of the block
// call it.
template <class T, class Shape, class Range, class Tiles, class Limits>
WPK_DEVICE void multiplyByWarpgroups(float (&acc)[Shape::accumulators], unsigned char* shared, const Range& range,
    const Tiles& tiles, const Limits& limits)
{
    const WgmmaRing<Shape> ring(sharedAddress(shared));
    const bool isProducer = threadIdx.x == Shape::consumers;
    if (isProducer)
        ring.init();
    if constexpr (Shape::fillers > 1)
        syncCluster(); // @cluster_there: no block brings tiles before the other one's barriers are there
    if (isProducer)
        fillWgmmaRing<Shape>(ring, tiles, range.first, range.count);
    __syncwarp();    // the producer's lanes took different ways
    __syncthreads(); // @barriers_there
    if (warpIndex() < Shape::warpsM)
    {
        RingPlace<Shape::stages> place;
        multiplyRing<T, Shape, Tiles::kConstantB>(acc, shared, ring, place, range, limits);
        if (Shape::fillers > 1)
            ring.release(place.last());
    }
    else if (isProducer)
    {
        refillWgmmaRing<Shape>(ring, tiles, range.first, range.count);
    }
    __syncwarp();
    if (Shape::early)
        waitForPrevious(); // from here on memory is touched that kernels in front touch
    __syncthreads();       // @ring_free
}

// Computes a tile with the other blocks that share its reduction; who has sums in the end stores them. From `rows`
// on as storeTiles. `limits` keep A (channel_limits.cuh).
template <class Problem, class Shape, class Range, class Tiles, class Rows, class Limits = NoLimits>
WPK_DEVICE void computeWgmmaTile(unsigned char* shared, const Range& range, const Tiles& tiles,
    const Partials& partials, const Rows& rows, const void* const* operands, void* y, int firstRow, int rowLimit,
    int firstColumn, int valid, int stored, const Limits& limits = Limits())
{
    float acc[Shape::accumulators] = {};
    multiplyByWarpgroups<typename Problem::Multiply, Shape>(acc, shared, range, tiles, limits);
    if constexpr (Shape::sharers > 1)
    {
        storeSumOfCluster<Problem, Shape>(
            acc, shared, range.part, rows, operands, y, firstRow, rowLimit, firstColumn, valid, stored);
    }
    // @split_summed
    else if (range.template sum<Shape::consumers, true>(acc, shared, partials) && warpIndex() < Shape::warpsM)
    {
        float tiles[Shape::tilesM][Shape::tilesN][4];
        memcpy(tiles, acc, sizeof tiles);
        storeTiles<Problem, Shape>(tiles, shared, rows, operands, y, firstRow, rowLimit, firstColumn, valid, stored);
    }
}

} // namespace wpk
