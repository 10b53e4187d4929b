// A convolution's product by warpgroups (sm_90a) over patches that stay: the pixels under a tile of output pixels, halo
// included, come to shared memory once, and every tap of the filter multiplies rows of them. im2col brings a pixel once
// for each tap that reads it.
//
// A patch is 128 bytes of channels of its pixels, row by row, as one tensor copy lays it out; what lies outside of the
// image is zero. Beside it is a ring of filters, a slot holds those of some taps. Warps load their rows of a tap from
// the patch into registers, so that a tap may begin at any pixel; a warpgroup has 64 pixels. The last warp's first
// lane asks for patches and filters.
#pragma once

#include <wpk/kernels/early_launch.cuh>
#include <wpk/kernels/mbarrier.cuh>
#include <wpk/kernels/mma.cuh>
#include <wpk/kernels/output_tile.cuh>
#include <wpk/kernels/tile_shared.cuh>
#include <wpk/kernels/tma.cuh>
#include <wpk/kernels/wgmma.cuh>
#include <wpk/kernels/wgmma_ring.cuh>

namespace wpk
{

// The shape of a block's work. Schedule names tile_p, tile_q, block_n, taps (of a slot of filters), stages (slots of
// filters), patches (slots of patches) and early.
template <class T, class Problem, class Schedule>
struct HaloShape : Warpgroups<T, Schedule::tile_p * Schedule::tile_q, Schedule::block_n, Problem::c>
{
    using Groups = Warpgroups<T, Schedule::tile_p * Schedule::tile_q, Schedule::block_n, Problem::c>;
    using Groups::blockN, Groups::kBoxDepth, Groups::kBoxRowBytes;
    static constexpr int kPixels = Schedule::tile_p * Schedule::tile_q;
    static constexpr int stages = Schedule::stages, patches = Schedule::patches, taps = Schedule::taps;
    // The patch, and how far apart two are: swizzles repeat after 1024 bytes.
    static constexpr int patchH =
        (Schedule::tile_p - 1) * Problem::stride_h + (Problem::filter_h - 1) * Problem::dilation_h + 1;
    static constexpr int patchW =
        (Schedule::tile_q - 1) * Problem::stride_w + (Problem::filter_w - 1) * Problem::dilation_w + 1;
    static constexpr int patchBytes = patchH * patchW * kBoxRowBytes, patchPitch = ceilDivide(patchBytes, 1024) * 1024;
    static constexpr int tapBytes = blockN * kBoxRowBytes, slotBytes = taps * tapBytes;
    static constexpr int kTaps = Problem::filter_h * Problem::filter_w, slots = kTaps / taps; // of a patch
    static constexpr int chunks = ceilDivide(Problem::c, kBoxDepth);

    static_assert(!isSame<T, SplitFp32>, "products of fp32 take their parts from a ring");
    static_assert(1 <= kPixels && kPixels <= 256, "a tile has at most 256 pixels, those of four warpgroups");
    static_assert(kPixels * 4 >= Groups::warpsM * 16 * 3, "at most a quarter of the warpgroups' rows have no pixel");
    static_assert(patchH <= 256 && patchW <= 256, "a tensor copy has at most 256 pixels along each side");
    static_assert(kTaps <= 9, "the loop over taps is unrolled");
    static_assert(taps >= 1 && kTaps % taps == 0, "a slot has taps that divide the filter's");
    static_assert(stages >= 2 || slots == 1, "the ring has at least two slots, or one that holds all taps");
    static_assert(1 <= stages && stages <= slots * chunks, "no more slots than are filled");
    static_assert(1 <= patches && patches <= chunks, "no more patches than there are");
    static_assert(Schedule::early == 0 || Schedule::early == 1, "early is 0 or 1");
};

// Slots in shared memory, Pitch bytes apart, and their barriers.
template <int Slots, int Pitch, int Warps>
struct SlotRing : SlotBarriers<Slots, Warps>
{
    SharedAddress slots;
    static constexpr int kBytes = Slots * Pitch;

    WPK_DEVICE SlotRing(SharedAddress slots, SharedAddress barriers)
        : SlotBarriers<Slots, Warps>{barriers}, slots(slots)
    {
    }
    WPK_DEVICE SharedAddress at(int slot) const
    {
        return slots + slot * Pitch;
    }
};

// A block's patches and filters.
template <class Shape>
struct HaloRings
{
    using Patches = SlotRing<Shape::patches, Shape::patchPitch, Shape::warpsM>;
    using Filters = SlotRing<Shape::stages, Shape::slotBytes, Shape::warpsM>;
    Patches patches;
    Filters filters;

    WPK_DEVICE explicit HaloRings(SharedAddress shared)
        : patches{shared, shared + Patches::kBytes + Filters::kBytes},
          filters{shared + Patches::kBytes, patches.barriers + Patches::kBarrierBytes}
    {
    }
    WPK_DEVICE void init() const
    {
        patches.init();
        filters.init();
        fenceBarrierInit();
    }
};

// Asks for patches and filters, each as soon as its slot is free; for the first filters before the kernels in front
// have ended. Patches are asked for as soon as those before have been multiplied, which a ring full of filters says.
template <class Problem, class Shape, bool Early>
WPK_DEVICE void feedHaloRings(
    const HaloRings<Shape>& rings, const TensorMaps<2>& maps, int image, int h, int w, int firstFilter)
{
    constexpr int kAhead = minOf(Shape::stages, Shape::slots) - 1;
    RingPlace<Shape::patches> patch;
    RingPlace<Shape::stages> place;
    int asked = 0; // patches
    WPK_KEEP_LOOP
    for (int chunk = 0; chunk < Shape::chunks; ++chunk)
    {
        WPK_KEEP_LOOP
        for (int slot = 0; slot < Shape::slots; ++slot)
        {
            rings.filters.claim(place, Shape::slotBytes);
            WPK_UNROLL
            for (int tap = 0; tap < Shape::taps; ++tap)
            {
                copyTensor(rings.filters.at(place.slot) + tap * Shape::tapBytes, maps.at[1],
                    rings.filters.full(place.slot), {chunk * Shape::kBoxDepth, slot * Shape::taps + tap, firstFilter});
            }
            place.advance();
            if (slot != kAhead)
                continue;
            if (Early && chunk == 0)
                waitForPrevious();
            WPK_KEEP_LOOP
            for (; asked < minOf(chunk + Shape::patches, Shape::chunks); ++asked)
            {
                rings.patches.claim(patch, Shape::patchBytes);
                copyTensor(rings.patches.at(patch.slot), maps.at[0], rings.patches.full(patch.slot),
                    {asked * Shape::kBoxDepth, w, h, image});
                patch.advance();
            }
        }
    }
    if (Early)
        releaseNext();
}

// A lane's row of the product, and where it lies in a patch under the filter's first tap.
template <class Problem, class Schedule, class Shape>
WPK_DEVICE int patchPixel()
{
    const int row = warpIndex() * 16 + laneIndex() % 16;
    const int pixel = minOf(row, Shape::kPixels - 1); // rows without a pixel are not stored
    return pixel / Schedule::tile_q * Problem::stride_h * Shape::patchW + pixel % Schedule::tile_q * Problem::stride_w;
}

// acc += the products of all taps and channels. Those of a tap run while the rows of the next one are loaded; a chunk's
// end before the next one begins (tile_wgmma.cuh says of products from registers why).
template <class T, class Problem, class Schedule, class Shape>
WPK_DEVICE void multiplyHalo(float (&acc)[Shape::accumulators], const HaloRings<Shape>& rings)
{
    const int pixel = patchPixel<Problem, Schedule, Shape>(), half = laneIndex() / 16;
    uint32 rows[2][Shape::slices][4];
    RingPlace<Shape::patches> patch;
    RingPlace<Shape::stages> place;
    const auto loadRows = [&](int tap, int pixel)
    {
        const int down = tap / Problem::filter_w * Problem::dilation_h;
        const int right = tap % Problem::filter_w * Problem::dilation_w;
        const int at = pixel + down * Shape::patchW + right;
        WPK_UNROLL
        for (int slice = 0; slice < Shape::slices; ++slice)
            loadMatrix4(
                rows[tap % 2][slice], rings.patches.at(patch.slot) + SwizzledTile<128>::offset(at, slice * 2 + half));
    };
    WPK_KEEP_LOOP
    for (int chunk = 0; chunk < Shape::chunks; ++chunk)
    {
        waitBarrier(rings.patches.full(patch.slot), patch.parity);
        loadRows(0, computedHere(pixel));
        WPK_UNROLL
        for (int tap = 0; tap < Shape::kTaps; ++tap)
        {
            if (tap % Shape::taps == 0)
                waitBarrier(rings.filters.full(place.slot), place.parity);
            __syncwarp(); // products are asked for by whole warps
            const uint64 b =
                swizzledDescriptor<128>(rings.filters.at(place.slot) + tap % Shape::taps * Shape::tapBytes);
            fenceWgmma();
            WPK_UNROLL
            for (int slice = 0; slice < Shape::slices; ++slice)
                wgmma<T>(acc, rows[tap % 2][slice], b + slice * 2, 1);
            commitWgmma();
            if (tap + 1 == Shape::kTaps)
                continue;
            const int next = computedHere(pixel);
            waitWgmma<1>(); // for the products of the tap before
            keepUntilHere(rows[(tap + 1) % 2]);
            if (tap > 0 && tap % Shape::taps == 0)
                rings.filters.release(place.last());
            loadRows(tap + 1, next);
            if ((tap + 1) % Shape::taps == 0)
                place.advance();
        }
        waitWgmma<0>(acc);
        keepUntilHere(rows[0]);
        keepUntilHere(rows[1]);
        if (Shape::slots > 1 && Shape::taps == 1)
            rings.filters.release(place.last());
        rings.filters.release(place.slot);
        rings.patches.release(patch.slot);
        place.advance();
        patch.advance();
    }
}

} // namespace wpk
