// Parts of a sum that the blocks of a cluster send to each other (sm_90). A block gets the parts of all others for its
// share of the rows, in memory of its own that nothing else uses: so they may come while its products are under way. A
// barrier of its own counts their bytes. Nobody asks for anything, and nobody waits for a barrier of the cluster, which
// takes a fence of all memory on either side.
#pragma once

#include <wpk/kernels/barriers/cluster_copy.cuh>
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/copies/tma.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

// Where parts come in: a barrier, and behind it the rows that each other block sends, in the order of the blocks. Shape
// names blockM, splitCluster (blocks that split a tile), Multicast (those that share an operand: each has a tile of its
// own, whose parts are one such group apart), warpsM (warps that send, 16 rows each) and stagingStride (floats from row
// to row).
template <class Shape>
struct ClusterParts
{
    using Group = typename Shape::Multicast;
    static constexpr int kBlocks = Shape::splitCluster, kShare = ceilDivide(Shape::blockM, Shape::splitCluster);
    static constexpr int kRowBytes = Shape::stagingStride * 4, kPartBytes = kShare * kRowBytes;
    static constexpr int kBarrierBytes = 16; // so that parts lie as copies need them
    static constexpr int kBytes = kBlocks > 1 ? kBarrierBytes + (kBlocks - 1) * kPartBytes : 0;
    static_assert((kBlocks - 1) * kShare < Shape::blockM, "every block has a share of the rows");

    unsigned char* memory; // kBytes, aligned to 16

    // One thread calls it; behind it stands fenceBarrierInit, and a barrier of the cluster before a block sends.
    WPK_DEVICE void init() const
    {
        initBarrier(barrier(), Shape::warpsM); // @senders_counted
    }

    // A warp's 16 rows of `matrix`, which it has written, to the blocks that store them; those of this block's own
    // share stay. All lanes of each warp that sends call it. No block may end before the others have their parts.
    WPK_DEVICE void send(const float* matrix, int rank) const
    {
        fenceAsyncProxy(); // @parts_fenced
        __syncwarp();
        const int target = laneIndex();
        if (target == 0)
        {
            if (warpIndex() == 0)
                arriveExpectBytes(barrier(), (kBlocks - 1) * rowsOf(rank) * kRowBytes); // @parts_announced
            else
                arriveBarrier(barrier());
        }
        if (target >= kBlocks || target == rank)
            return;
        const int share = target * kShare; // @share_chosen
        const int first = maxOf(warpIndex() * 16, share);
        const int end = minOf(warpIndex() * 16 + 16, share + rowsOf(target));
        if (first >= end)
            return;
        const SharedAddress place = sharedAddress(partOf(rank, target)) + (first - share) * kRowBytes; // @part_sent
        const int block = Group::member() + target * Group::blocks;                                    // @block_chosen
        copyToBlock(clusterAddress(place, block), sharedAddress(matrix + first * Shape::stagingStride),
            (end - first) * kRowBytes, clusterAddress(barrier(), block));
    }

    // Behind it lie all parts, and this block's own rows of `matrix`.
    WPK_DEVICE void wait() const
    {
        waitBarrier(barrier(), 0); // @parts_awaited
    }

    // Where block `source` has its part for block `target`, in the latter's memory.
    WPK_DEVICE unsigned char* partOf(int source, int target) const
    {
        return memory + kBarrierBytes + (source - (source > target ? 1 : 0)) * kPartBytes;
    }

private:
    WPK_DEVICE SharedAddress barrier() const
    {
        return sharedAddress(memory);
    }
    static WPK_DEVICE int rowsOf(int rank)
    {
        return minOf(kShare, Shape::blockM - rank * kShare);
    }
};

} // namespace wpk
