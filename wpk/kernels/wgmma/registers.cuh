// What warpgroups multiply from registers (sm_90a): a warp loads its rows of A from the ring (wgmma_ring.cuh), and
// keeps them between the limits of their channels or splits them into parts of tf32.
#pragma once

#include <wpk/kernels/channel_limits.cuh>
#include <wpk/kernels/named_barrier.cuh>
#include <wpk/kernels/wgmma/pipeline.cuh>

namespace wpk
{

// Steps of products in the 128 bytes of a box's rows.
inline constexpr int kBoxSteps = 4;

// A warp's rows of a box of A, kept between their channels' limits. Those of the next box come meanwhile.
template <class T, int Slices, class Limits>
WPK_DEVICE void loadLimited(uint32 (&values)[Slices][4], SharedAddress tile, typename Limits::Step (&kept)[Slices],
    const Limits& limits, int nextBox)
{
    const int row = warpIndex() * 16 + laneIndex() % 16, chunk = laneIndex() / 16; // @fragment_row
    WPK_UNROLL
    for (int slice = 0; slice < Slices; ++slice)
    {
        loadMatrix4(values[slice], tile + SwizzledTile<128>::offset(row, slice * 2 + chunk));
        auto& fragment = reinterpret_cast<uint32(&)[1][4]>(values[slice]);
        Limits::template keepFragments<T>(fragment, kept[slice]);
    }
    limits.template load<T, kBoxSteps>(kept, nextBox * kBoxSteps);
}

// acc += A * B over a warpgroup's rows of `count` tiles, from `place` on, where A has limits: a warp loads its rows of
// a box during the products of the box before in this step. A slot is given back after it, but for the last. None of a
// step's products is left to the next one: around the loop ptxas takes registers that products still read for others.
// The first box is `firstBox` of the reduction.
template <class T, class Shape, class Limits>
WPK_DEVICE void multiplyLimitedRing(float (&acc)[Shape::accumulators], const WgmmaRing<Shape>& ring,
    RingPlace<Shape::stages>& place, int count, const Limits& limits, int firstBox)
{
    uint32 rows[2][Shape::slices][4] = {};
    typename Limits::Step kept[Shape::slices];
    limits.template load<T, kBoxSteps>(kept, firstBox * kBoxSteps);
    WPK_KEEP_LOOP
    for (int step = 0; step < count; ++step)
    {
        waitBarrier(ring.full(place.slot), place.parity); // @tiles_awaited
        __syncwarp();                                     // products are asked for by whole warps
        WPK_UNROLL
        for (int box = 0; box < Shape::boxes; ++box)
        {
            const SharedAddress tile = ring.tileA(place.slot) + box * Shape::boxBytesA;
            loadLimited<T>(rows[box % 2], tile, kept, limits, firstBox + step * Shape::boxes + box + 1);
            const uint64 b = describeB<Shape>(ring.tileB(place.slot));
            fenceWgmma(); // @products_fenced
            WPK_UNROLL
            for (int slice = 0; slice < Shape::slices; ++slice)
                wgmma<T, Shape::majorB>(acc, rows[box % 2][slice], b + sliceOfB<Shape>(box, slice), 1);
            commitWgmma();
            if (box + 1 == Shape::boxes)
                break;
            waitWgmma<1>(); // for the products of the box before
            keepUntilHere(rows[(box + 1) % 2]);
        }
        waitWgmma<0>(acc); // @products_done
        keepUntilHere(rows[0]);
        if (Shape::boxes > 1)
            keepUntilHere(rows[1]);
        if (step + 1 < count)
            ring.release(place.slot);
        place.advance();
    }
}

// acc += sums, when all products that add to `sums` are done and no longer read the parts of A.
template <int Count, int Slices>
WPK_DEVICE void takeSums(float (&acc)[Count], float (&sums)[Count], Tf32Parts<Slices, 4>& parts)
{
    waitWgmma<0>(sums); // @sums_done
    keepUntilHere(parts.big);
    keepUntilHere(parts.small);
    WPK_UNROLL
    for (int i = 0; i < Count; ++i)
        acc[i] += sums[i];
    keepUntilHere(acc);
}

// What the unit cuts off a number of B. Nearest: the number lies as the packings of that name say, so that what the
// unit reads is the nearest number of tf32, and its lower bits are what is left.
template <bool Nearest>
WPK_DEVICE float smallPart(float stored)
{
    const uint32 bits = asUint32(stored);
    const float big = asFloat(bits & ~0x1fffu);
    if constexpr (Nearest)
    {
        return asFloat(bits - ((bits & 0x1000u) << 1)) - big;
    }
    else
    {
        return asFloat(roundToTf32(stored - big)); // two bits more than with the nearest number, so rounded
    }
}

// Of a box of B, what the unit cuts off its numbers; to `small`, where it lies as the box does. All consumers of the
// block share in it.
template <class Shape, bool Nearest>
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
                values[item][e] = smallPart<Nearest>(values[item][e]);
            if (exists(place))
                store<float, 4>(reinterpret_cast<float*>(small + place * 16), values[item]);
        }
    }
}

// The same in fp32, as three products of tf32 (split_fp32.cuh). A warp loads its rows of A and splits them in
// registers. B stays as it is, since the unit cuts it; all together write what is cut off beside the ring. What a box
// adds is summed apart, since tensor cores cut sums. ConstantB: B lies so that what the unit makes of it is nearest.
template <bool ConstantB, class Shape, class Limits>
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
        waitBarrier(ring.full(place.slot), place.parity); // @tiles_awaited
        __syncwarp();                                     // products are asked for by whole warps
        WPK_UNROLL
        for (int box = 0; box < Shape::boxes; ++box, ++boxes)
        {
            const int tileA = place.slot * Shape::stageBytes + box * Shape::boxBytesA;
            const int tileB = place.slot * Shape::stageBytes + Shape::bytesA + box * Shape::boxBytesB;
            const int smallB = ring.smallB(boxes);
            splitBox<Shape, ConstantB>(shared + tileB, shared + smallB);
            loadLimited<SplitFp32>(values, ring.shared + tileA, kept, limits, firstBox + boxes + 1);
            takeSums(acc, sums, parts); // of the box before
            if (box == 0 && step > 0)   // @slot_released_behind_sums
                ring.release(previous);
            parts = Tf32Parts<kSlices, 4>(values);
            fenceAsyncProxy();                // @cuts_fenced
            syncThreads(1, Shape::consumers); // what is cut off is there, and nobody reads that of the box before
            const uint64 b = swizzledDescriptor<128>(ring.shared + tileB);
            const uint64 small = swizzledDescriptor<128>(ring.shared + smallB);
            fenceWgmma(); // @products_fenced
            WPK_UNROLL
            for (int slice = 0; slice < kSlices; ++slice)
            {
                wgmma<Tf32>(sums, parts.small[slice], b + slice * 2, slice != 0); // @sums_of_box_begun
                wgmma<Tf32>(sums, parts.big[slice], small + slice * 2, 1);        // @big_times_small
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
    giveBackCuts<minOf(kSlices, 3)>(acc);
}

} // namespace wpk
