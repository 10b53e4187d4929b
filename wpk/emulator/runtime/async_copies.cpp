// cp.async in checking mode: a copy lands when it is waited for, and its target is NaN until then.
#include <cstring>

#include "early_launch.h"

using namespace wpk;
using namespace wpk::emulator;

namespace
{

void land(const Copy& copy)
{
    char* const target = reinterpret_cast<char*>(copy.target);
    if (copy.valid > 0)
        memcpy(target, copy.source, static_cast<size_t>(copy.valid));
    memset(target + copy.valid, 0, static_cast<size_t>(copy.bytes - copy.valid));
}

void check(const Copy& copy)
{
    const unsigned long alignment = static_cast<unsigned long>(copy.bytes) - 1;
    uint32 offset;
    if (copy.valid < 0 || copy.valid > copy.bytes)
        fail("copyAsync: %d valid bytes of %d", copy.valid, copy.bytes);
    if ((copy.target & alignment) != 0)
        fail("copyAsync: target is not aligned to %d bytes", copy.bytes);
    if ((reinterpret_cast<unsigned long>(copy.source) & alignment) != 0)
    {
        fail("copyAsync: source %p is not aligned to %d bytes", copy.source, copy.bytes);
    }
    if (copy.valid > 0 && isClosed(copy.source))
        fail("copyAsync: memory of the kernels in front is copied before waitForPrevious");
    if (!findShared(copy.target, static_cast<size_t>(copy.bytes), &offset))
    {
        fail("copyAsync: target %p is not in the block's shared memory", reinterpret_cast<void*>(copy.target));
    }
}

} // namespace

WPK_API void wpk_emulator_copy_async(unsigned long target, const void* source, int bytes, int valid)
{
    const Copy copy{target, source, bytes, valid};
    check(copy);
    if (worker->has(kCountBanks))
        logAccess(__builtin_return_address(0), target, static_cast<uint32>(bytes), kCopy);
    if (worker->has(kLateCopies))
    {
        memset(reinterpret_cast<void*>(target), 0xff, static_cast<size_t>(bytes));
        currentFiber()->checks->copies.pending.push_back(copy);
    }
    else
    {
        land(copy);
    }
    yieldSometimes();
}

WPK_API void wpk_emulator_commit_copies()
{
    if (worker->has(kLateCopies))
        currentFiber()->checks->copies.commit();
}

WPK_API void wpk_emulator_wait_copies(int pending)
{
    if (worker->has(kLateCopies))
        currentFiber()->checks->copies.wait(static_cast<size_t>(pending), land);
}
