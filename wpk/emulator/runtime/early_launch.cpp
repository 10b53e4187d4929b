// Early launch: which threads have waited for the kernels in front, and memory that is closed until then.
#include "early_launch.h"

#include <sys/mman.h>

namespace wpk::emulator
{

namespace
{

struct EarlyLaunch
{
    bool active = false, open = true;
    std::vector<Pages> awaited;
    std::vector<char> waited; // by fiber
};

EarlyLaunch early; // launches wait for one another, and this one has one worker

size_t numberOf(const Fiber& fiber)
{
    return static_cast<size_t>(&fiber - worker->fibers.data());
}

void setOpen(bool open)
{
    if (early.open == open)
        return;
    for (const Pages& pages : early.awaited)
        mprotect(pages.address, pages.bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
    early.open = open;
}

} // namespace

void beginEarlyLaunch(const Pages* awaited, size_t count)
{
    early.active = true;
    early.awaited.assign(awaited, awaited + count);
}

void endEarlyLaunch()
{
    setOpen(true);
    early.active = false;
}

void beginEarlyCluster(const Worker& self)
{
    if (!early.active)
        return;
    early.waited.assign(self.fibers.size(), 0);
    setOpen(false);
}

void openFor(const Fiber& next)
{
    if (early.active)
        setOpen(early.waited[numberOf(next)] != 0);
}

void openForCopies()
{
    if (early.active)
        setOpen(true);
}

void shareWaits(const RunningBlock& block)
{
    if (!early.active)
        return;
    const auto begin = early.waited.begin() + block.firstFiber, end = begin + block.threads;
    for (auto each = begin; each != end; ++each)
    {
        if (*each == 0)
            continue;
        for (auto other = begin; other != end; ++other)
            *other = 1;
        break;
    }
    openFor(*currentFiber());
}

void checkWaited(const Fiber& fiber)
{
    if (early.active && early.waited[numberOf(fiber)] == 0)
        fail("a thread of a kernel that is launched early ends without waitForPrevious");
}

bool isClosed(const void* address)
{
    if (early.open)
        return false;
    const char* const place = static_cast<const char*>(address);
    for (const Pages& pages : early.awaited)
    {
        const char* const begin = static_cast<const char*>(pages.address);
        if (place >= begin && place < begin + pages.bytes)
            return true;
    }
    return false;
}

} // namespace wpk::emulator

using namespace wpk::emulator;

WPK_API void wpk_emulator_wait_previous()
{
    if (!early.active)
        return;
    early.waited[numberOf(*currentFiber())] = 1;
    openFor(*currentFiber());
    yieldSometimes();
}
