// What other blocks may see: stores to global memory, fences, and the counts by which blocks tell each other.
//
// A count says that something has been written. That holds where each store of the block before it is followed by a
// fence that comes before the count: a thread's own in its own order, another's through a barrier.
#include "state.h"

namespace wpk::emulator
{

void noteStore(const void* address, uint32 bytes)
{
    const RunningBlock& block = currentBlock();
    const char* const place = static_cast<const char*>(address);
    uint32 offset;
    requireNoBarrier(reinterpret_cast<unsigned long>(address), bytes);
    if (place >= block.shared && place + bytes <= block.shared + block.sharedBytes)
        noteSharedWrite(static_cast<uint32>(place - block.shared), bytes);
    else if (!findShared(reinterpret_cast<unsigned long>(address), 1, &offset))
        currentFiber()->checks->stored = true;
}

void orderStores(RunningBlock& block)
{
    Worker& self = *worker;
    bool stored = false, fenced = false;
    for (size_t i = 0; i < block.threads && !self.checks.empty(); ++i)
    {
        FiberChecks& checks = self.checks[block.firstFiber + i];
        stored |= checks.stored;
        fenced |= checks.fenced;
        checks.stored = checks.fenced = false;
    }
    block.unfenced = stored || (block.unfenced && !fenced);
}

} // namespace wpk::emulator

using namespace wpk::emulator;

WPK_API void wpk_emulator_fence()
{
    if (FiberChecks* const checks = currentFiber()->checks)
    {
        checks->stored = false;
        checks->fenced = true;
    }
}

WPK_API void wpk_emulator_count()
{
    const FiberChecks* const own = currentFiber()->checks;
    if (own == nullptr)
        return;
    const RunningBlock& block = currentBlock();
    if (own->stored || (block.unfenced && !own->fenced))
        fail("an atomicAdd counts what may not be written yet: there is no __threadfence after a store");
    for (size_t i = 0; i < block.threads; ++i)
    {
        if (worker->checks[block.firstFiber + i].stored)
            fail("an atomicAdd counts what may not be written yet: no barrier after a store of thread %zu", i);
    }
    yieldSometimes();
}
