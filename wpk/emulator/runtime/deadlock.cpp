// The report of a deadlock: who waits where, and for what.
#include <algorithm>
#include <cstdio>

#include "state.h"

namespace wpk::emulator
{

namespace
{

struct Waiting
{
    uint32 atBarrier = 0, inWarps = 0, atCluster = 0, atNamed = 0, atGrid = 0, asleep = 0;
    const Fiber* sleeper = nullptr; // at a barrier in shared memory
};

Waiting countWaiting()
{
    Waiting waiting;
    for (const Warp& warp : worker->warps)
    {
        waiting.atBarrier += static_cast<uint32>(__builtin_popcount(warp.barred));
        waiting.inWarps += static_cast<uint32>(__builtin_popcount(warp.arrived));
        for (uint32 rest = warp.asleep; rest != 0; rest &= rest - 1)
        {
            const Fiber& fiber = warp.fibers[__builtin_ctz(rest)];
            if (fiber.kind == Collective::clusterWait)
            {
                waiting.atCluster++;
                continue;
            }
            if (fiber.kind == Collective::gridBarrier)
            {
                waiting.atGrid++;
                continue;
            }
            if (fiber.kind == Collective::namedBarrier)
            {
                waiting.atNamed++;
                continue;
            }
            waiting.asleep++;
            waiting.sleeper = waiting.sleeper == nullptr ? &fiber : waiting.sleeper;
        }
    }
    return waiting;
}

} // namespace

void failDeadlock()
{
    const Waiting waiting = countWaiting();
    char barrier[160] = "", all[400] = "";
    if (waiting.sleeper != nullptr)
        describeBarrier(waiting.sleeper->operands, waiting.sleeper->mask, barrier, sizeof barrier);
    size_t used = 0;
    const auto say = [&](uint32 threads, const char* where, const char* detail)
    {
        if (threads == 0)
            return;
        const int length = snprintf(all + used, sizeof all - used, "%s%u of %u threads wait at %s%s",
            used == 0 ? "" : ", ", threads, worker->live, where, detail);
        used = std::min(used + static_cast<size_t>(length), sizeof all - 1);
    };
    say(waiting.asleep, "a barrier in shared memory", barrier);
    say(waiting.atCluster, "the barrier of the cluster", "");
    say(waiting.atGrid, "a barrier of the grid", ", whose other blocks do not arrive or run only later");
    say(waiting.atNamed, "syncThreads", "");
    say(waiting.atBarrier, "__syncthreads", "");
    say(waiting.inWarps, "a warp operation that lanes of their warp do not reach", "");
    fail("deadlock: %s", all);
}

} // namespace wpk::emulator
