// Barriers in shared memory that count arrivals of threads and bytes of asynchronous writes (sm_90).
#include <cstdio>

#include "state.h"

namespace wpk::emulator
{

namespace
{

// The eight bytes of a barrier. A phase ends when no arrival and no byte is outstanding.
struct Barrier
{
    int32 bytes;    // announced and not landed
    uint16 pending; // arrivals still to come
    uint16 count : 15;
    uint16 phase : 1;
};
static_assert(sizeof(Barrier) == 8);

constexpr int kMostArrivals = 0x7fff;
constexpr int kMostBytes = (1 << 20) - 1; // of the transaction count, either way: PTX ISA, "mbarrier object"

Barrier& barrierAt(unsigned long address)
{
    uint32 offset;
    if (address % 8 != 0)
        fail("a barrier at %p is not 8-byte aligned", reinterpret_cast<void*>(address));
    if (!findShared(address, 8, &offset))
        fail("a barrier at %p is not in shared memory", reinterpret_cast<void*>(address));
    return *reinterpret_cast<Barrier*>(address);
}

// A barrier of this block, or of another one of the cluster.
Barrier& clusterBarrierAt(unsigned long address)
{
    uint32 offset;
    if (!findShared(address, 8, &offset))
        liveBlockAt(address, 8, "an arrival at a barrier of the cluster");
    if (address % 8 != 0)
        fail("a barrier at %p is not 8-byte aligned", reinterpret_cast<void*>(address));
    return *reinterpret_cast<Barrier*>(address);
}

// What no barrier holds from its initialisation on: neither zeros nor what unset memory holds.
void requireInitialised(uint16 pending, uint16 count, const char* what)
{
    if (count == 0 || pending > count)
        fail("%s at a barrier that has not been initialised", what);
}

// Null where nobody has initialised it, or nothing is checked.
BarrierOrigin* originOf(unsigned long barrier)
{
    for (BarrierOrigin& origin : worker->barrierOrigins)
    {
        if (origin.barrier == barrier)
            return &origin;
    }
    return nullptr;
}

void noteOrigin(unsigned long barrier)
{
    const BarrierOrigin origin{barrier, currentFiber(), currentBlock().phases, worker->clusterPhases};
    if (BarrierOrigin* const known = originOf(barrier))
        *known = origin;
    else
        worker->barrierOrigins.push_back(origin);
}

// Other warps than the one that has initialised a barrier come behind a barrier of the block, those of other blocks
// behind one of the cluster: else it may not be there yet.
void requireOrdered(unsigned long barrier, const char* what)
{
    const Fiber& self = *currentFiber();
    const BarrierOrigin* const origin = originOf(barrier);
    if (origin == nullptr || origin->thread->warp == self.warp)
        return;
    const bool isOfBlock = origin->thread->block == self.block;
    const bool isOrdered =
        worker->clusterPhases > origin->clusterPhases || (isOfBlock && currentBlock().phases > origin->blockPhases);
    if (!isOrdered)
        fail("%s at a barrier that may not be there yet: none of the %s since thread %u has initialised it", what,
            isOfBlock ? "block" : "cluster", origin->thread->index.x);
}

void addBytes(Barrier& barrier, int bytes)
{
    barrier.bytes += bytes;
    if (barrier.bytes > kMostBytes || barrier.bytes < -kMostBytes)
        fail("a barrier counts %d bytes: at most %d are possible", barrier.bytes, kMostBytes);
}

bool completePhase(Barrier& barrier)
{
    if (barrier.pending != 0 || barrier.bytes != 0)
        return false;
    barrier.pending = barrier.count;
    barrier.phase ^= 1;
    wakeSleepers();
    return true;
}

} // namespace

void requireNoBarrier(unsigned long address, uint32 bytes)
{
    for (const BarrierOrigin& origin : worker->barrierOrigins)
    {
        if (address < origin.barrier + sizeof(Barrier) && origin.barrier < address + bytes)
            fail("a store of %u bytes over a barrier: what lies there may change at any time", bytes);
    }
}

void landBytes(unsigned long barrier, int bytes)
{
    Barrier& state = *reinterpret_cast<Barrier*>(barrier);
    addBytes(state, -bytes);
    completePhase(state);
}

void describeBarrier(const void* barrier, uint32 parity, char* text, size_t size)
{
    const Barrier& state = *static_cast<const Barrier*>(barrier);
    uint32 offset = 0;
    const RunningBlock* const block = blockAt(reinterpret_cast<unsigned long>(barrier), 8, &offset);
    snprintf(text, size,
        " (at byte %u of block %u of the cluster, for parity %u: %u arrivals and %d bytes are missing)", offset,
        block == nullptr ? 0 : block->rank, parity, unsigned{state.pending}, state.bytes);
}

} // namespace wpk::emulator

using namespace wpk::emulator;

WPK_API void wpk_emulator_mbarrier_init(unsigned long barrier, int count)
{
    Barrier& state = barrierAt(barrier);
    if (count < 1 || count > kMostArrivals)
        fail("a barrier for %d arrivals", count);
    state.bytes = 0;
    state.pending = static_cast<uint16_t>(count);
    state.count = static_cast<uint16_t>(count);
    state.phase = 0;
    if (currentFiber()->checks != nullptr)
        noteOrigin(barrier);
}

WPK_API void wpk_emulator_mbarrier_arrive(unsigned long barrier, int transaction_bytes)
{
    Barrier& state = clusterBarrierAt(barrier);
    requireInitialised(state.pending, state.count, "an arrival");
    requireOrdered(barrier, "an arrival");
    if (state.pending == 0)
        fail("more arrivals at a barrier than its count of %u", unsigned{state.count});
    addBytes(state, transaction_bytes);
    state.pending--;
    // Whoever waited for this phase may run before this thread does anything else.
    constexpr int kYields = 3;
    if (completePhase(state) && worker->has(kRandomOrder))
    {
        for (int i = 0; i < kYields; ++i)
            yieldNow();
    }
}

WPK_API void wpk_emulator_mbarrier_wait(unsigned long barrier, int parity)
{
    const volatile Barrier& state = barrierAt(barrier);
    requireInitialised(state.pending, state.count, "a wait");
    requireOrdered(barrier, "a wait");
    while (state.phase == (parity & 1))
        sleepFor(Collective::mbarrier, reinterpret_cast<const void*>(barrier), static_cast<uint32_t>(parity));
}
