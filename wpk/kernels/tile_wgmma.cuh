// A block's matrix product by warpgroups (sm_90a): one or two of them, each with 64 rows, multiply the tiles of a ring
// (wgmma_ring.cuh) as they arrive.
//
// D[row][column] += sum over k of A[row][k] * B[column][k]. The last warp of the block is the producer: its first lane
// asks for tiles, and waits for a slot until every other warp has multiplied what lay there.
#pragma once

#include <wpk/kernels/channel_limits.cuh>
#include <wpk/kernels/cluster_sum.cuh>
#include <wpk/kernels/named_barrier.cuh>
#include <wpk/kernels/split_k.cuh>
#include <wpk/kernels/wgmma_ring.cuh>

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

// acc += A * B over a warpgroup's rows of `count` tiles, from `place` on. The products of a tile run while those of the
// next one are started; then its slot is given back, but for the last.
template <class T, class Shape>
WPK_DEVICE void multiplyWgmmaRing(
    float (&acc)[Shape::accumulators], const WgmmaRing<Shape>& ring, RingPlace<Shape::stages>& place, int count)
{
    const int groupRows = warpIndex() / Shape::kGroupWarps * (Shape::kGroupRows * Shape::kBoxRowBytes);
    int previous = 0;
    WPK_KEEP_LOOP
    for (int step = 0; step < count; ++step)
    {
        waitBarrier(ring.full(place.slot), place.parity);
        __syncwarp(); // products are asked for by whole warps
        const uint64 a = swizzledDescriptor<128>(ring.tileA(place.slot) + groupRows);
        const uint64 b = describeB<Shape>(ring.tileB(place.slot));
        fenceWgmma();
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
            ring.release(previous);
        previous = place.slot;
        place.advance();
    }
    waitWgmma<0>(acc);
}

// Steps of products in the 128 bytes of a box's rows.
inline constexpr int kBoxSteps = 4;

// A warp's rows of a box of A, kept between their channels' limits. Those of the next box come meanwhile.
template <class T, int Slices, class Limits>
WPK_DEVICE void loadLimited(uint32 (&values)[Slices][4], SharedAddress tile, typename Limits::Step (&kept)[Slices],
    const Limits& limits, int nextBox)
{
    const int row = warpIndex() * 16 + laneIndex() % 16, chunk = laneIndex() / 16;
    WPK_UNROLL
    for (int slice = 0; slice < Slices; ++slice)
    {
        loadMatrix4(values[slice], tile + SwizzledTile<128>::offset(row, slice * 2 + chunk));
        auto& fragment = reinterpret_cast<uint32(&)[1][4]>(values[slice]);
        Limits::template keepFragments<T>(fragment, kept[slice]);
    }
    limits.template load<T, kBoxSteps>(kept, nextBox * kBoxSteps);
}

// The same where A has limits: a warp loads its rows of a box, during the products of the box before in this step, and
// multiplies them from registers. None of a step's products is left to the next one: around the loop ptxas takes
// registers that products still read for others. The first box is `firstBox` of the reduction.
template <class T, class Shape, class Limits>
WPK_DEVICE void multiplyLimitedRing(float (&acc)[Shape::accumulators], const WgmmaRing<Shape>& ring,
    RingPlace<Shape::stages>& place, int count, const Limits& limits, int firstBox)
{
    uint32 loaded[Shape::slices][4], held[Shape::slices][4];
    typename Limits::Step kept[Shape::slices];
    limits.template load<T, kBoxSteps>(kept, firstBox * kBoxSteps);
    WPK_KEEP_LOOP
    for (int step = 0; step < count; ++step)
    {
        waitBarrier(ring.full(place.slot), place.parity);
        __syncwarp(); // products are asked for by whole warps
        WPK_UNROLL
        for (int box = 0; box < Shape::boxes; ++box)
        {
            const SharedAddress tile = ring.tileA(place.slot) + box * Shape::boxBytesA;
            loadLimited<T>(loaded, tile, kept, limits, firstBox + step * Shape::boxes + box + 1);
            if (box > 0)
            {
                waitWgmma<0>(acc); // the products of the box before
                keepUntilHere(held);
            }
            memcpy(held, loaded, sizeof held);
            const uint64 b = describeB<Shape>(ring.tileB(place.slot));
            fenceWgmma();
            WPK_UNROLL
            for (int slice = 0; slice < Shape::slices; ++slice)
                wgmma<T, Shape::majorB>(acc, held[slice], b + sliceOfB<Shape>(box, slice), 1);
            commitWgmma();
        }
        waitWgmma<0>(acc);
        keepUntilHere(held);
        if (step + 1 < count)
            ring.release(place.slot);
        place.advance();
    }
}

// acc += sums, when all products that add to `sums` are done and no longer read the parts of A.
template <int Count, int Slices>
WPK_DEVICE void takeSums(float (&acc)[Count], float (&sums)[Count], Tf32Parts<Slices, 4>& parts)
{
    waitWgmma<0>(sums);
    keepUntilHere(parts.big);
    keepUntilHere(parts.small);
    WPK_UNROLL
    for (int i = 0; i < Count; ++i)
        acc[i] += sums[i];
    keepUntilHere(acc);
}

// Of a box of B, what the unit cuts off its numbers, rounded to tf32; to `small`, where it lies as the box does. All
// consumers of the block share in it.
template <class Shape>
WPK_DEVICE void splitBox(const unsigned char* box, unsigned char* small)
{
    constexpr int kVectors = Shape::boxBytesB / 16, kItems = ceilDivide(kVectors, Shape::consumers);
    constexpr int kAtOnce = minOf(kItems, 4); // loads under way
    static_assert(kItems % kAtOnce == 0, "items are whole groups");
    const auto exists = [](int place)
    {
        return kVectors % Shape::consumers == 0 || place < kVectors;
    };
    WPK_UNROLL
    for (int begin = 0; begin < kItems; begin += kAtOnce)
    {
        const int first = static_cast<int>(threadIdx.x) + begin * Shape::consumers;
        Vector<float, 4> values[kAtOnce];
        WPK_UNROLL
        for (int item = 0; item < kAtOnce; ++item)
        {
            const int place = first + item * Shape::consumers;
            if (exists(place))
                values[item] = load<float, 4>(reinterpret_cast<const float*>(box + place * 16));
        }
        WPK_UNROLL
        for (int item = 0; item < kAtOnce; ++item)
        {
            const int place = first + item * Shape::consumers;
            WPK_UNROLL
            for (int e = 0; e < 4; ++e)
            {
                const float value = values[item][e];
                values[item][e] = asFloat(roundToTf32(value - asFloat(asUint32(value) & ~0x1fffu)));
            }
            if (exists(place))
                store<float, 4>(reinterpret_cast<float*>(small + place * 16), values[item]);
        }
    }
}

// The same in fp32, as three products of tf32 (split_fp32.cuh). A warp loads its rows of A and splits them in
// registers. B stays as it is, since the unit cuts it; all together write what is cut off beside the ring. What a box
// adds is summed apart, since tensor cores cut sums.
template <class Shape, class Limits>
WPK_DEVICE void multiplySplitRing(float (&acc)[Shape::accumulators], unsigned char* shared,
    const WgmmaRing<Shape>& ring, RingPlace<Shape::stages>& place, int count, const Limits& limits, int firstBox)
{
    constexpr int kSlices = Shape::slices;
    float sums[Shape::accumulators] = {};
    uint32 values[kSlices][4] = {};
    Tf32Parts<kSlices, 4> parts(values);
    typename Limits::Step kept[kSlices];
    limits.template load<SplitFp32, kBoxSteps>(kept, firstBox * kBoxSteps);
    int previous = 0, boxes = 0;
    WPK_KEEP_LOOP
    for (int step = 0; step < count; ++step)
    {
        waitBarrier(ring.full(place.slot), place.parity);
        __syncwarp(); // products are asked for by whole warps
        WPK_UNROLL
        for (int box = 0; box < Shape::boxes; ++box, ++boxes)
        {
            const int tileA = place.slot * Shape::stageBytes + box * Shape::boxBytesA;
            const int tileB = place.slot * Shape::stageBytes + Shape::bytesA + box * Shape::boxBytesB;
            const int smallB = ring.smallB(boxes);
            splitBox<Shape>(shared + tileB, shared + smallB);
            loadLimited<SplitFp32>(values, ring.shared + tileA, kept, limits, firstBox + boxes + 1);
            takeSums(acc, sums, parts); // of the box before
            if (box == 0 && step > 0)
                ring.release(previous);
            parts = Tf32Parts<kSlices, 4>(values);
            fenceAsyncProxy();
            syncThreads(1, Shape::consumers); // what is cut off is there, and nobody reads that of the box before
            const uint64 b = swizzledDescriptor<128>(ring.shared + tileB);
            const uint64 small = swizzledDescriptor<128>(ring.shared + smallB);
            fenceWgmma();
            WPK_UNROLL
            for (int slice = 0; slice < kSlices; ++slice)
            {
                wgmma<Tf32>(sums, parts.small[slice], b + slice * 2, slice != 0);
                wgmma<Tf32>(sums, parts.big[slice], small + slice * 2, 1);
            }
            WPK_UNROLL
            for (int slice = 0; slice < kSlices; ++slice)
                wgmma<Tf32>(sums, parts.big[slice], b + slice * 2, 1);
            commitWgmma();
        }
        previous = place.slot;
        place.advance();
    }
    takeSums(acc, sums, parts);
}

// The same by what the operands need, over the steps of `range`; `place` goes on. All consumers call it.
template <class T, class Shape, class Range, class Limits>
WPK_DEVICE void multiplyRing(float (&acc)[Shape::accumulators], unsigned char* shared, const WgmmaRing<Shape>& ring,
    RingPlace<Shape::stages>& place, const Range& range, const Limits& limits)
{
    if constexpr (Shape::isSplit)
    {
        multiplySplitRing(acc, shared, ring, place, range.count, limits, range.first * Shape::boxes);
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
    const WgmmaRing<Shape> ring{sharedAddress(shared)};
    const bool isProducer = threadIdx.x == Shape::consumers;
    if (isProducer)
        ring.init();
    if constexpr (Shape::fillers > 1)
        syncCluster(); // no block brings tiles before the other one's barriers are there
    if (isProducer)
        fillWgmmaRing<Shape>(ring, tiles, range.first, range.count);
    __syncwarp();    // the producer's lanes took different ways
    __syncthreads(); // the barriers are there for everyone
    if (warpIndex() < Shape::warpsM)
    {
        RingPlace<Shape::stages> place;
        multiplyRing<T>(acc, shared, ring, place, range, limits);
        if (Shape::fillers > 1)
            ring.release((range.count - 1) % Shape::stages);
    }
    else if (isProducer)
    {
        refillWgmmaRing<Shape>(ring, tiles, range.first, range.count);
    }
    __syncwarp();
    if (Shape::early)
        waitForPrevious(); // from here on memory is touched that kernels in front touch
    __syncthreads();       // the ring is free
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
    else if (range.template sum<Shape::consumers, true>(acc, shared, partials) && warpIndex() < Shape::warpsM)
    {
        float tiles[Shape::tilesM][Shape::tilesN][4];
        memcpy(tiles, acc, sizeof tiles);
        storeTiles<Problem, Shape>(tiles, shared, rows, operands, y, firstRow, rowLimit, firstColumn, valid, stored);
    }
}

} // namespace wpk
