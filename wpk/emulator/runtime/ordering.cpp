// What other blocks may see: stores to global memory, fences, and the counts by which blocks tell each other.
//
// A count says that something has been written. That holds where each store of the block before it is followed by a
// fence that comes before the count: a thread's own in its own order, another's through a barrier.
#include "state.h"

namespace wpk::emulator
{

void noteStore(const void* address)
{
    uint32 offset;
    if (!findShared(reinterpret_cast<unsigned long>(address), 1, &offset))
        currentFiber()->checks->stored = true;
}

void orderStores(Worker& self)
{
    bool stored = false, fenced = false;
    for (FiberChecks& checks : self.checks)
    {
        stored |= checks.stored;
        fenced |= checks.fenced;
        checks.stored = checks.fenced = false;
    }
    self.unfenced = stored || (self.unfenced && !fenced);
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
    if (own->stored || (worker->unfenced && !own->fenced))
        fail("an atomicAdd counts what may not be written yet: there is no __threadfence after a store");
    for (const FiberChecks& each : worker->checks)
    {
        if (each.stored)
            fail("an atomicAdd counts what may not be written yet: no barrier after a store of thread %zu",
                static_cast<size_t>(&each - worker->checks.data()));
    }
    yieldSometimes();
}
