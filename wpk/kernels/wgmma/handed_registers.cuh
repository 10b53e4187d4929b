// Registers of consumer warpgroups, some of which the producer hands over (sm_90a; handed_registers.py says how many).
#pragma once

#include <wpk/kernels/wgmma/wgmma.cuh>

namespace wpk
{

// Where consumers need more registers than all threads can have, a producer hands over its own: a whole warpgroup,
// else it is a warp. Groups: consumer warpgroups of a block.
template <class Problem, int Groups>
struct HandedRegisters
{
    static constexpr bool handsRegisters = Problem::consumer_registers != 0;
    static constexpr int consumerRegisters = Problem::consumer_registers, producerRegisters = Groups == 2 ? 24 : 32;

    // All threads of a warp call it.
    static WPK_DEVICE void release()
    {
        if constexpr (handsRegisters)
            releaseRegisters<producerRegisters>();
    }
    static WPK_DEVICE void claim()
    {
        if constexpr (handsRegisters)
            claimRegisters<consumerRegisters>();
    }
};

} // namespace wpk
