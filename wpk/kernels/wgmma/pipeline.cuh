// What feeds warpgroups (sm_90a): a ring of tiles in shared memory, which one thread asks the unit that copies tensors
// for, and two barriers for each slot.
//
// A tile is boxes of 128 bytes along k (64 elements of 16 bits, 32 of four bytes), their rows with 128-byte swizzle;
// or, of a B of 16 bits that lies across, boxes of 64 columns and all of a step's depth, their rows 64 columns.
//
// Tiles says where tiles come from:
//   prefetch()                                                   bring the tensor maps near
//   copyA(target, barrier, step), copyB(target, barrier, step)   ask for the boxes of a step
//   kConstantB                                                   no kernel writes B
//
// Two blocks of a cluster may share what both need: A's rows where they lie side by side, B where one lies below the
// other. Each asks for one part of such a tile, for both; so a slot is free when the warps of both have left it.
#pragma once

#include <wpk/kernels/cluster.cuh>
#include <wpk/kernels/early_launch.cuh>
#include <wpk/kernels/mbarrier.cuh>
#include <wpk/kernels/tile_mma.cuh>
#include <wpk/kernels/tile_store.cuh>
#include <wpk/kernels/tma.cuh>
#include <wpk/kernels/wgmma/wgmma.cuh>

namespace wpk
{

// The warpgroups of a block that multiply Rows x Columns, 64 rows each, from boxes of 128 bytes along k. Depth is the
// number of elements along k that a box has at most, where it is smaller: what follows them is zero. T is the type of
// wgmma's operands.
template <class T, int Rows, int Columns, int Depth>
struct Warpgroups : StackedWarps<ceilDivide(Rows, 64) * 4, Columns>
{
    using Warps = StackedWarps<ceilDivide(Rows, 64) * 4, Columns>;
    static constexpr int kBoxRowBytes = 128, kGroupRows = 64, kGroupWarps = 4;
    static constexpr int kBoxDepth = kBoxRowBytes / static_cast<int>(sizeof(typename MmaStored<T>::Type));
    static constexpr int blockN = Columns, accumulators = Columns / 2;
    static constexpr int consumers = Warps::warpsM * kWarpSize;
    // As storeTiles sees the columns that blocks which stay stage at once, so that little memory is beside their ring.
    using Staged = StackedWarps<Warps::warpsM, minOf(Columns, 64)>;
    // Products of a box, 32 bytes each.
    static constexpr int slices = minOf(ceilDivide(Depth, MmaDepth<T>::value), kBoxDepth / MmaDepth<T>::value);

    static_assert(
        (blockN & (blockN - 1)) == 0 && 16 <= blockN && blockN <= 256, "columns are a power of two from 16 to 256");
};

// The shape of a block's work. Schedule names block_m, block_n, block_k, stages, split, cluster, early, share and
// persistent. Depth is the number of elements along k that a step has at most, where it is smaller than a tile: what
// follows them is zero. B lies along k, or across it. T is the type of wgmma's operands.
template <class T, class Schedule, int Depth, Major MajorB = Major::k>
struct WgmmaShape : Warpgroups<T, Schedule::block_m, Schedule::block_n, Depth>
{
    using Groups = Warpgroups<T, Schedule::block_m, Schedule::block_n, Depth>;
    using Groups::blockN, Groups::kBoxDepth, Groups::kBoxRowBytes;
    static constexpr int blockM = Schedule::block_m, blockK = Schedule::block_k;
    static constexpr int stages = Schedule::stages;
    static constexpr bool early = Schedule::early != 0;
    static constexpr bool stays = Schedule::persistent != 0;
    // Blocks of a cluster that share a reduction and store a share of the rows each.
    static constexpr int sharers = Schedule::cluster != 0 ? Schedule::split : 1;
    static constexpr int boxes = blockK / kBoxDepth;
    static constexpr Major majorB = MajorB;
    static constexpr int boxesB = majorB == Major::k ? boxes : blockN / kBoxDepth;
    static constexpr int boxBytesA = blockM * kBoxRowBytes;
    static constexpr bool isSplit = isSame<T, SplitFp32>;
    static constexpr int boxBytesB = (majorB == Major::k ? blockN : blockK) * kBoxRowBytes;
    static constexpr int bytesA = boxes * boxBytesA, stageBytes = bytesA + boxesB * boxBytesB;
    // Parts of a box that blocks of a cluster bring for each other, by rows; and the blocks that fill a ring.
    static constexpr int partsA = Schedule::share == 1 ? 2 : 1, partsB = Schedule::share == 2 ? 2 : 1;
    static constexpr int fillers = partsA * partsB;
    static constexpr int partRowsA = blockM / partsA, partRowsB = (majorB == Major::k ? blockN : blockK) / partsB;

    static_assert(blockM == 64 || blockM == 128, "one or two warpgroups have 64 rows each");
    static_assert(
        blockK % kBoxDepth == 0 && 1 <= boxes && boxes <= 4, "a tile is one to four boxes of 128 bytes a row");
    static_assert(stages >= 2, "the ring has at least two tiles");
    static_assert(stages * boxes <= 16, "the ring has at most 16 boxes");
    static_assert(majorB == Major::k || kBoxDepth == 64, "a B that lies across has 16-bit elements");
    static_assert(majorB == Major::k || blockN >= kBoxDepth, "a B that lies across has whole boxes of 64 columns");
    static_assert(blockN <= 128 || !isSplit, "sums of fp32 are kept twice");
    static_assert(blockN <= 128 || Schedule::split == 1, "sums of split tiles fit into registers beside their loads");
    static_assert(Schedule::cluster == 0 || Schedule::cluster == 1, "cluster is 0 or 1");
    static_assert(Schedule::cluster == 0 || (2 <= sharers && sharers <= 8), "a cluster has two to eight blocks");
    static_assert(Schedule::early == 0 || Schedule::early == 1, "early is 0 or 1");
    static_assert(0 <= Schedule::share && Schedule::share <= 2, "share is 0 (nothing), 1 (A) or 2 (B)");
    static_assert(Schedule::share == 0 || Schedule::split == 1, "blocks that share tiles have whole reductions");
    static_assert(Schedule::share == 0 || blockN >= 64, "tiles that are shared have 64 columns at least");
    static_assert(Schedule::persistent >= 0, "persistent is a number of blocks, or 0");
    static_assert(Schedule::persistent == 0 || (Schedule::split == 1 && Schedule::share == 0),
        "blocks that stay have whole reductions of their own");
};

// The slot of a step, and the parity of its barriers in this round of the ring.
template <int Stages>
struct RingPlace
{
    int slot = 0, parity = 0;

    WPK_DEVICE void advance()
    {
        if (++slot == Stages)
        {
            slot = 0;
            parity ^= 1;
        }
    }

    // The slot of the step before.
    WPK_DEVICE int last() const
    {
        return (slot == 0 ? Stages : slot) - 1;
    }
};

// The barriers of Slots slots in shared memory: for each one that counts what has arrived, and one that counts the
// Warps that need it no longer, of all Fillers blocks that fill it.
template <int Slots, int Warps, int Fillers = 1>
struct SlotBarriers
{
    SharedAddress barriers;
    static constexpr int kBarrierBytes = Slots * 16;

    WPK_DEVICE SharedAddress full(int slot) const
    {
        return barriers + slot * 16;
    }
    WPK_DEVICE SharedAddress empty(int slot) const
    {
        return full(slot) + 8;
    }

    // Behind it stands fenceBarrierInit.
    WPK_DEVICE void init() const
    {
        WPK_UNROLL
        for (int slot = 0; slot < Slots; ++slot)
        {
            initBarrier(full(slot), 1);
            initBarrier(empty(slot), Warps * Fillers); // @warps_counted
        }
    }

    // A warp has left a slot: who fills it may do so again.
    WPK_DEVICE void release(int slot) const
    {
        if constexpr (Fillers == 1)
        {
            if (laneIndex() == 0)
                arriveBarrier(empty(slot));
        }
        else if (laneIndex() < Fillers) // @fillers_told
        {
            arriveReadBarrier(clusterAddress(empty(slot), laneIndex())); // @filler_told
        }
    }

    // The thread that fills a slot waits until nobody needs it, and says what comes.
    WPK_DEVICE void claim(const RingPlace<Slots>& place, int bytes) const
    {
        waitBarrier(empty(place.slot), place.parity ^ 1); // @slot_claimed: a fresh one lets the first round pass
        arriveExpectBytes(full(place.slot), bytes);       // @bytes_claimed
    }
};

// Where tiles lie, and behind them their barriers. The epilogue stages its sums over the tiles, which are no longer
// needed then, but never over barriers: an initialised barrier's memory is for nothing else (PTX ISA,
// "mbarrier.inval"), and words of sums that lay there were seen to change.
template <class Shape>
struct WgmmaRing : SlotBarriers<Shape::stages, Shape::warpsM, Shape::fillers>
{
    using Barriers = SlotBarriers<Shape::stages, Shape::warpsM, Shape::fillers>;
    SharedAddress shared;

    WPK_DEVICE explicit WgmmaRing(SharedAddress shared) : Barriers{shared + barriersAt()}, shared(shared) {}

    WPK_DEVICE void init() const
    {
        Barriers::init();
        fenceBarrierInit();
    }
    WPK_DEVICE SharedAddress tileA(int slot) const
    {
        return shared + slot * Shape::stageBytes;
    }
    WPK_DEVICE SharedAddress tileB(int slot) const
    {
        return tileA(slot) + Shape::bytesA;
    }
    // Of fp32 two boxes behind the ring: what is cut off B's numbers, box after box in turns.
    static WPK_DEVICE constexpr int smallB(int box)
    {
        return Shape::stages * Shape::stageBytes + box % 2 * Shape::boxBytesB; // @place_of_cuts
    }
    static WPK_DEVICE constexpr int bytes()
    {
        return barriersAt() + Barriers::kBarrierBytes;
    }

private:
    static WPK_DEVICE constexpr int barriersAt()
    {
        const int end = smallB(0) + (Shape::isSplit ? 2 * Shape::boxBytesB : 0);
        return Shape::stays ? end : maxOf(end, Shape::warpsM * Shape::stagingBytes); // @place_of_barriers
    }
};

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

// Which of the Parts of a tile this block asks for.
template <int Parts>
WPK_DEVICE int tilePart()
{
    return Parts == 1 ? 0 : clusterRank(); // @part_of_block
}

// Asks for it, for all blocks that share the tile.
template <int Parts, int Rank>
WPK_DEVICE void copyTilePart(
    SharedAddress target, const TensorMap* map, SharedAddress barrier, const int (&coordinates)[Rank])
{
    if constexpr (Parts == 1)
    {
        copyTensor(target, map, barrier, coordinates);
    }
    else
    {
        copyTensorToBlocks(target, map, barrier, coordinates, (1 << Parts) - 1); // @part_for_blocks
    }
}
template <int Parts, int Rank>
WPK_DEVICE void copyPixelsPart(SharedAddress target, const TensorMap* map, SharedAddress barrier,
    const int (&coordinates)[Rank], const uint16 (&taps)[Rank - 2])
{
    if constexpr (Parts == 1)
    {
        copyPixels(target, map, barrier, coordinates, taps);
    }
    else
    {
        copyPixelsToBlocks(target, map, barrier, coordinates, taps, (1 << Parts) - 1); // @part_for_blocks
    }
}

// Asks for the first tiles, as many as the ring holds: B's before the kernels in front have ended, if none of them
// writes B.
template <class Shape, class Tiles>
WPK_DEVICE void fillWgmmaRing(const WgmmaRing<Shape>& ring, const Tiles& tiles, int first, int count)
{
    const int filled = minOf(Shape::stages, count);
    tiles.prefetch();
    if (Shape::early && !Tiles::kConstantB)
        waitForPrevious();
    for (int slot = 0; slot < filled; ++slot)
    {
        arriveExpectBytes(ring.full(slot), Shape::stageBytes); // @first_bytes
        tiles.copyB(ring.tileB(slot), ring.full(slot), first + slot);
    }
    if (Shape::early && Tiles::kConstantB)
        waitForPrevious();
    for (int slot = 0; slot < filled; ++slot)
        tiles.copyA(ring.tileA(slot), ring.full(slot), first + slot);
}

// Asks for the other tiles, each as soon as its slot is free.
template <class Shape, class Tiles>
WPK_DEVICE void refillWgmmaRing(const WgmmaRing<Shape>& ring, const Tiles& tiles, int first, int count)
{
    RingPlace<Shape::stages> place;
    WPK_KEEP_LOOP
    for (int step = Shape::stages; step < count; ++step)
    {
        waitBarrier(ring.empty(place.slot), place.parity); // @slot_awaited
        arriveExpectBytes(ring.full(place.slot), Shape::stageBytes);
        tiles.copyB(ring.tileB(place.slot), ring.full(place.slot), first + step);
        tiles.copyA(ring.tileA(place.slot), ring.full(place.slot), first + step);
        place.advance();
    }
    if (Shape::early)
        releaseNext();
    // Where several blocks fill the ring, all tiles are given back: then no other block arrives here any more, and what
    // this one brought has come.
    const int end = Shape::fillers == 1 ? count : count + Shape::stages;
    WPK_KEEP_LOOP
    for (int step = maxOf(Shape::stages, count); step < end; ++step) // @all_given_back
    {
        waitBarrier(ring.empty(place.slot), place.parity); // @slot_awaited
        place.advance();
    }
}

} // namespace wpk
