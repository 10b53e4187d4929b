// Turns in which a block's consumer warpgroups ask for products (sm_90a): one multiplies while others compute (Shah et
// al., "FlashAttention-3", 2024, section 3.1).
#pragma once

#include <wpk/kernels/barriers/mbarrier.cuh>

namespace wpk
{

// A barrier for each group in shared memory; none where no turns are taken.
template <int Groups, bool AreTaken>
struct GroupTurns
{
    SharedAddress barriers;
    static constexpr int kBytes = AreTaken ? 8 * Groups : 0;

    // Behind it stands fenceBarrierInit.
    WPK_DEVICE void init() const
    {
        WPK_UNROLL
        for (int group = 0; group < Groups && AreTaken; ++group)
            initBarrier(of(group), 4); // warps of a group
    }

    // A group waits until the products of the group before it are under way, which are the last group's of the turn
    // before where it is the first. Turns count from 1: fresh barriers let phase 1 pass, with which the first group
    // begins.
    WPK_DEVICE void await(int group, int turn) const
    {
        if constexpr (AreTaken)
        {
            waitBarrier(of(group), group == 0 ? turn & 1 : turn + 1 & 1);
            __syncwarp();
        }
    }
    // A warp says so to the next group.
    WPK_DEVICE void pass(int group) const
    {
        if constexpr (AreTaken)
        {
            if (laneIndex() == 0)
                arriveBarrier(of(group + 1 == Groups ? 0 : group + 1)); // @turn_passed_on
        }
    }

private:
    WPK_DEVICE SharedAddress of(int group) const
    {
        return barriers + 8 * group;
    }
};

} // namespace wpk
