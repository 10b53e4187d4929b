// The sizes of a warpgroup kernel (sm_90a): consumer warpgroups, the boxes that TMA brings, pipeline stages, clusters.
//
// A stage holds a tile of A and one of B. A tile is boxes of 128 bytes along k (64 elements of 16 bits, 32 of four
// bytes), their rows with 128-byte swizzle; or, of a B of 16 bits that lies across, boxes of 64 columns and all of a
// step's depth, their rows 64 columns.
#pragma once

#include <wpk/kernels/tiles/tile_mma.cuh>
#include <wpk/kernels/tiles/tile_store.cuh>
#include <wpk/kernels/wgmma/column_pieces.cuh>
#include <wpk/kernels/wgmma/multicast.cuh>
#include <wpk/kernels/wgmma/wgmma.cuh>

namespace wpk
{

// The consumer warpgroups of a block: they multiply Rows x Columns, GroupRows each, from boxes of 128 bytes along k.
// Depth is the number of elements along k that a box has at most, where it is smaller: what follows them is zero. T is
// the type of wgmma's operands.
template <class T, int Rows, int Columns, int Depth, int GroupRows = 64>
struct Warpgroups : StackedWarps<ceilDivide(Rows, GroupRows) * 4, Columns>
{
    using Warps = StackedWarps<ceilDivide(Rows, GroupRows) * 4, Columns>;
    using Sum = typename MmaStored<T>::Sum;
    static constexpr int kBoxRowBytes = 128, kGroupWarps = 4;
    static constexpr int kProductRows = 64, kGroupRows = GroupRows; // of one wgmma, and of all that a group asks for
    static constexpr int kBoxDepth = kBoxRowBytes / static_cast<int>(sizeof(typename MmaStored<T>::Type));
    static constexpr int blockN = Columns, accumulators = GroupRows / kProductRows * (Columns / 2);
    static constexpr int consumers = Warps::warpsM * kWarpSize; // threads
    // As storeTiles sees the columns that a persistent kernel stages at once: the memory lies beside its pipeline.
    using Staged = StackedWarps<Warps::warpsM, stagedAtOnce(Columns)>;
    // Products of a box, 32 bytes along k each.
    static constexpr int slices = minOf(ceilDivide(Depth, MmaDepth<T>::value), kBoxDepth / MmaDepth<T>::value);
};

// Those of a schedule: a tile's rows are shared among them; or there are two, and each has tiles of its own.
template <class T, class Schedule, int Depth>
using ScheduledWarpgroups = Warpgroups<T, Schedule::pingpong != 0 ? 2 * Schedule::block_m : Schedule::block_m,
    Schedule::block_n, Depth, Schedule::pingpong != 0 ? Schedule::block_m : 64>;

// The shape of a block's work. Schedule names block_m, block_n, block_k, stages, split, cluster, early, share,
// persistent, pingpong and shared_by, and asserts their limits (wpk/schedules/wgmma/tiles.py). Depth is the number
// of elements along k that a step has at most, where it is smaller than a tile: what follows them is zero. B lies along
// k, or across it. T is the type of wgmma's operands. ByColumns: what becomes of sums is the same in all rows, so that
// they are stored by columns (column_pieces.cuh); but not where a cluster's blocks have rows of them each.
template <class T, class Schedule, int Depth, bool ByColumns, Major MajorB = Major::k>
struct WgmmaShape : ScheduledWarpgroups<T, Schedule, Depth>
{
    using Groups = ScheduledWarpgroups<T, Schedule, Depth>;
    using Groups::blockN, Groups::kBoxDepth, Groups::kBoxRowBytes;
    using typename Groups::Sum;
    static constexpr int groups = Groups::warpsM / Groups::kGroupWarps; // consumer warpgroups of a block
    static constexpr int blockM = Schedule::block_m, blockK = Schedule::block_k;
    static constexpr int stages = Schedule::stages;
    static constexpr bool early = Schedule::early != 0; // programmatic dependent launch
    static constexpr bool persistent = Schedule::persistent != 0;
    static constexpr bool pingpong = Schedule::pingpong != 0;
    static constexpr int stageWarps = pingpong ? Groups::kGroupWarps : Groups::warpsM; // that multiply what a stage has
    static constexpr bool splitFp32 = isSame<T, SplitFp32>; // a product of fp32 as three of tf32
    // Blocks of the cluster in which the partial sums of split-K meet.
    static constexpr int splitCluster = Schedule::cluster != 0 ? Schedule::split : 1;
    static constexpr bool byColumns = ByColumns && splitCluster == 1;
    // Shared memory that a warp stores its sums through.
    static constexpr int stagedBytes = byColumns    ? columnStagingBytes(blockN)
                                       : persistent ? Groups::Staged::stagingBytes
                                                    : Groups::stagingBytes;
    // Blocks of the cluster that a tile is multicast to; each asks for one part of its rows.
    static constexpr int multicastA = Schedule::share == 1 ? Schedule::shared_by : 1;
    static constexpr int multicastB = Schedule::share == 2 ? Schedule::shared_by : 1;
    static constexpr int multicast = multicastA * multicastB;
    using Multicast = MulticastGroup<multicast, splitCluster>;

    static constexpr Major majorB = MajorB;
    static constexpr int boxes = blockK / kBoxDepth;
    static constexpr int boxesB = majorB == Major::k ? boxes : blockN / kBoxDepth;
    static constexpr int boxRowsA = blockM, boxRowsB = majorB == Major::k ? blockN : blockK;
    static constexpr int boxBytesA = boxRowsA * kBoxRowBytes, boxBytesB = boxRowsB * kBoxRowBytes;
    static constexpr int bytesA = boxes * boxBytesA, stageBytes = bytesA + boxesB * boxBytesB;

    static_assert(majorB == Major::k || kBoxDepth == 64, "a B that lies across has 16-bit elements");
};

} // namespace wpk
