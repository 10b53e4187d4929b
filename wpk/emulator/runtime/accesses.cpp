// Loads and stores of vector.cuh: alignment, the log of shared accesses, other warps in between.
#include "state.h"

using namespace wpk::emulator;

WPK_API void wpk_emulator_access(const void* address, uint32_t bytes, uint32_t is_store)
{
    const unsigned long place = reinterpret_cast<unsigned long>(address);
    if (place % bytes != 0)
    {
        fail("%s of %u bytes at %p, which is not aligned to them", is_store ? "store" : "load", bytes, address);
    }
    if (worker->has(kCountBanks))
    {
        logAccess(__builtin_return_address(0), place, bytes, is_store ? kStore : kLoad);
    }
    if (is_store && currentFiber()->checks != nullptr)
        noteStore(address, bytes);
    yieldSometimes();
}
