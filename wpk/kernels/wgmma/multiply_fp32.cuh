// The consumers' loop in fp32 (sm_90a): both operands are split into parts of tf32 (split_fp32.cuh), A in registers, B
// in shared memory.
#pragma once

#include <wpk/kernels/barriers/named_barrier.cuh>
#include <wpk/kernels/copies/tma.cuh>
#include <wpk/kernels/mma/split_fp32.cuh>
#include <wpk/kernels/wgmma/multiply_registers.cuh>

namespace wpk
{

// acc += sums, when all products that add to `sums` are done and no longer read the parts of A.
template <int Count, int Slices>
WPK_DEVICE void takeSums(float (&acc)[Count], float (&sums)[Count], Tf32Parts<Slices, 4>& parts)
{
    waitWgmma<0>(sums); // @box_awaited
    keepUntilHere(parts.big);
    keepUntilHere(parts.small);
    WPK_UNROLL
    for (int i = 0; i < Count; ++i)
        acc[i] += sums[i];
    keepUntilHere(acc);
}

// What tensor cores cut off a number of B. Nearest: the number lies as the packings of that name say, so that what they
// read is the nearest number of tf32, and its lower bits are what is left.
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

// Of a box of B, what tensor cores cut off its numbers; to `small`, where it lies as the box does. All consumers of the
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

// acc += A * B in fp32, as three products of tf32 (split_fp32.cuh), otherwise as multiplyFromRegisters. A warp loads
// its rows of A and splits them in registers. B stays as it is, since tensor cores cut it; all consumers together write
// what is cut off beside the stages. What a box adds is summed apart, since tensor cores cut sums. ConstantB: B lies so
// that what tensor cores make of it is nearest.
template <bool ConstantB, class Shape, class Limits>
WPK_DEVICE void multiplySplitFp32(float (&acc)[Shape::accumulators], unsigned char* shared,
    const WgmmaPipeline<Shape>& pipeline, PipelineState<Shape::stages>& state, int count, const Limits& limits,
    int firstBox)
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
        pipeline.wait(state);
        WPK_UNROLL
        for (int box = 0; box < Shape::boxes; ++box, ++boxes)
        {
            const int tileA = state.stage * Shape::stageBytes + box * Shape::boxBytesA;
            const int tileB = state.stage * Shape::stageBytes + Shape::bytesA + box * Shape::boxBytesB;
            const int smallB = pipeline.smallB(boxes);
            splitBox<Shape, ConstantB>(shared + tileB, shared + smallB);
            loadLimited<SplitFp32>(values, pipeline.shared + tileA, kept, limits, firstBox + boxes + 1);
            takeSums(acc, sums, parts); // of the box before
            if (box == 0 && step > 0)   // @stage_released_fp32
                pipeline.release(previous);
            parts = Tf32Parts<kSlices, 4>(values);
            fenceAsyncProxy();                // @cuts_fenced
            syncThreads(1, Shape::consumers); // what is cut off is there, and nobody reads that of the box before
            const uint64 b = swizzledDescriptor<128>(pipeline.shared + tileB);
            const uint64 small = swizzledDescriptor<128>(pipeline.shared + smallB);
            fenceWgmma();
            WPK_UNROLL
            for (int slice = 0; slice < kSlices; ++slice)
            {
                wgmma<Tf32>(sums, parts.small[slice], b + slice * 2, slice != 0); // @first_product
                wgmma<Tf32>(sums, parts.big[slice], small + slice * 2, 1);        // @small_product
            }
            WPK_UNROLL
            for (int slice = 0; slice < kSlices; ++slice)
                wgmma<Tf32>(sums, parts.big[slice], b + slice * 2, 1);
            commitWgmma();
        }
        previous = state.stage;
        state.advance();
    }
    takeSums(acc, sums, parts);
    giveBackCuts<minOf(kSlices, 3)>(acc);
}

} // namespace wpk
