// Barriers of some of a block's warps.
#include "state.h"

using namespace wpk::emulator;

WPK_API void wpk_emulator_named_barrier(int number, int threads)
{
    RunningBlock& block = currentBlock();
    if (number < 1 || static_cast<uint32_t>(number) >= kNamedBarriers)
        fail("syncThreads with barrier %d: 1 to %u are possible", number, kNamedBarriers - 1);
    if (threads <= 0 || threads % 32 != 0 || static_cast<uint32_t>(threads) > block.threads)
        fail("syncThreads of %d threads: whole warps, at most the block's %u", threads, block.threads);
    NamedBarrier& barrier = block.namedBarriers[number];
    if (barrier.arrived != 0 && barrier.threads != static_cast<uint32_t>(threads))
        fail("syncThreads: barrier %d is entered for %d threads and for %u", number, threads, barrier.threads);
    barrier.threads = static_cast<uint32_t>(threads);
    const uint32_t phase = barrier.phase;
    if (++barrier.arrived == barrier.threads)
    {
        barrier.arrived = 0;
        barrier.phase++;
        block.phases++;
        orderStores(block);
        wakeSleepers();
        return yieldSometimes();
    }
    while (barrier.phase == phase)
        sleepFor(Collective::namedBarrier, &barrier, 0);
    yieldSometimes();
}
