// Which fiber runs: rendezvous of warps and blocks, sleep, the end of a thread.
#include <cstdarg>
#include <cstdio>

#include "context_switch.h"
#include "early_launch.h"
#include "state.h"

__thread wpk::emulated::Thread* wpk_emulator_thread __attribute__((tls_model("initial-exec"), visibility("default")));

namespace wpk::emulator
{

__thread Worker* worker __attribute__((tls_model("initial-exec")));

namespace
{

void leaveTo(void* stack)
{
    void* abandoned;
    wpk_emulator_switch(&abandoned, stack);
    __builtin_unreachable();
}

// A runnable lane of `warp`, the next one after `lane` first; null when there is none.
inline Fiber* pickLane(Warp& warp, uint32 lane)
{
    const uint32 runnable = warp.runnable;
    if (runnable == 0)
        return nullptr;
    const uint32 above = lane == 31 ? 0 : runnable & ~((2u << lane) - 1);
    return warp.fibers + __builtin_ctz(above != 0 ? above : runnable);
}

// The fiber to run when `fiber` cannot go on: its own warp first, then the others in turn.
Fiber* pick(Fiber* fiber)
{
    Worker& self = *worker;
    const uint32 count = static_cast<uint32>(self.warps.size());
    if (self.has(kRandomOrder))
    {
        const uint32 first = self.draw() % count;
        for (uint32 i = 0; i < count; ++i)
        {
            Warp& warp = self.warps[(first + i) % count];
            if (Fiber* next = pickLane(warp, self.draw() % 32))
                return next;
        }
        return nullptr;
    }
    if (Fiber* next = pickLane(*fiber->warp, fiber->lane))
        return next;
    for (uint32 i = 1; i <= count; ++i)
    {
        Warp& warp = self.warps[(fiber->warp->place + i) % count];
        if (Fiber* next = pickLane(warp, 31))
            return next;
    }
    return nullptr;
}

// The same; when no thread can go on, only an asynchronous write that lands can help.
Fiber* pickAnybody(Fiber* fiber)
{
    Fiber* next = pick(fiber);
    for (; next == nullptr; next = pick(fiber))
    {
        openForCopies();
        if (!landAsyncWrite())
            failDeadlock();
    }
    return next;
}

__attribute__((noinline)) void yieldSlowly(Fiber* fiber)
{
    Fiber* const next = pickAnybody(fiber);
    openFor(*next);
    if (next == fiber)
        return;
    wpk_emulator_thread = next;
    return wpk_emulator_switch(&fiber->stack, next->stack);
}

// Both exits are tail calls, so that the switch returns straight into the kernel.
inline __attribute__((always_inline)) void yieldFrom(Fiber* fiber)
{
    // The address of the next lane depends on no load but this one: the usual case, kept short.
    const bool nextRuns = fiber->lane != 31 && (fiber->warp->runnable >> (fiber->lane + 1) & 1) != 0;
    if (__builtin_expect(nextRuns && !worker->has(kRandomOrder), 1))
    {
        Fiber* const next = fiber + 1;
        wpk_emulator_thread = next;
        return wpk_emulator_switch(&fiber->stack, next->stack);
    }
    return yieldSlowly(fiber);
}

// Runs the collective of `mask` when all its live lanes have arrived.
bool tryRelease(Warp& warp, uint32 mask)
{
    const uint32 needed = mask & warp.live;
    if (needed == 0 || (warp.arrived & needed) != needed)
        return false;
    const Fiber& first = warp.fibers[__builtin_ctz(needed)];
    for (uint32 rest = needed; rest != 0; rest &= rest - 1)
    {
        const Fiber& fiber = warp.fibers[__builtin_ctz(rest)];
        if (fiber.kind != first.kind || fiber.mask != first.mask)
        {
            fail("lanes of one warp meet in different operations: lane %u in %s (mask %08x), lane %u in %s (mask %08x)",
                first.lane, nameOf(first.kind), first.mask, fiber.lane, nameOf(fiber.kind), fiber.mask);
        }
    }
    Worker& self = *worker;
    self.statistics.collectives++;
    warp.arrived &= ~needed;
    warp.runnable |= needed;
    if (self.has(kCountBanks))
        countAccesses(warp);
    runCollective(first.kind, warp, needed);
    return true;
}

__attribute__((noinline)) void lastArrival(Warp& warp, uint32 mask)
{
    tryRelease(warp, mask);
    yieldSometimes();
}

void releaseBarrier(RunningBlock& block)
{
    Worker& self = *worker;
    block.barred = 0;
    block.voted = block.vote;
    block.vote = false;
    block.phases++;
    orderStores(block);
    for (uint32 i = 0; i < block.warps; ++i)
    {
        Warp& warp = self.warps[block.firstWarp + i];
        warp.runnable |= warp.barred;
        warp.barred = 0;
        if (self.has(kCountBanks))
            countAccesses(warp);
    }
    shareWaits(block);
}

[[noreturn]] void endCluster(Worker& self)
{
    if (self.has(kCountBanks))
    {
        for (Warp& warp : self.warps)
            countAccesses(warp);
    }
    leaveTo(self.returnStack);
    __builtin_unreachable();
}

} // namespace

void fail(const char* format, ...)
{
    Worker& self = *worker;
    if (!self.launch->failed.exchange(true))
    {
        va_list values;
        va_start(values, format);
        const int length = vsnprintf(self.launch->message, self.launch->messageBytes, format, values);
        va_end(values);
        const emulated::Index3 &block = currentBlock().index, &thread = currentFiber()->index;
        const size_t used = static_cast<size_t>(length) < self.launch->messageBytes ? static_cast<size_t>(length) : 0;
        snprintf(self.launch->message + used, self.launch->messageBytes - used,
            " [block (%u, %u, %u), thread (%u, %u, %u)]", block.x, block.y, block.z, thread.x, thread.y, thread.z);
    }
    leaveTo(self.returnStack);
    __builtin_unreachable();
}

void yieldNow()
{
    yieldSlowly(currentFiber());
}

void sleepFor(Collective kind, const void* barrier, uint32 parity)
{
    Fiber* const fiber = currentFiber();
    const uint32 bit = 1u << fiber->lane;
    fiber->kind = kind;
    fiber->operands = const_cast<void*>(barrier);
    fiber->mask = parity;
    fiber->warp->runnable &= ~bit;
    fiber->warp->asleep |= bit;
    yieldSlowly(fiber);
}

void wakeSleepers()
{
    for (Warp& warp : worker->warps)
    {
        warp.runnable |= warp.asleep;
        warp.asleep = 0;
    }
}

void yieldSometimes()
{
    constexpr uint32 kOneIn = 8;
    if (worker->has(kRandomOrder) && worker->draw() % kOneIn == 0)
        yieldSlowly(currentFiber());
}

} // namespace wpk::emulator

using namespace wpk::emulator;

WPK_API void wpk_emulator_collective(uint32_t mask, Collective kind, void* operands)
{
    Fiber* const fiber = currentFiber();
    Warp& warp = *fiber->warp;
    const uint32_t bit = 1u << fiber->lane;
    fiber->operands = operands;
    fiber->kind = kind;
    fiber->mask = mask;
    if (__builtin_expect((mask & bit) == 0, 0))
        fail("a lane takes part in an operation whose mask %08x lacks it", mask);
    const uint32_t arrived = warp.arrived |= bit;
    warp.runnable &= ~bit;
    if ((mask & warp.live & ~arrived) == 0)
        return lastArrival(warp, mask);
    return yieldFrom(fiber);
}

WPK_API void wpk_emulator_barrier()
{
    Fiber* const fiber = currentFiber();
    RunningBlock& block = currentBlock();
    const uint32_t bit = 1u << fiber->lane;
    fiber->warp->runnable &= ~bit;
    fiber->warp->barred |= bit;
    if (++block.barred == block.live)
    {
        releaseBarrier(block);
        return yieldSometimes();
    }
    return yieldFrom(fiber);
}

WPK_API int wpk_emulator_barrier_or(int predicate)
{
    RunningBlock& block = currentBlock();
    block.vote |= predicate != 0;
    wpk_emulator_barrier();
    return block.voted ? 1 : 0; // until this thread comes to the next barrier
}

WPK_API void wpk_emulator_fail(const char* what)
{
    fail("%s", what);
}

// The body of every fiber: the kernel, then the end of the thread.
extern "C" __attribute__((visibility("hidden"))) void wpk_emulator_fiber_main()
{
    worker->launch->kernel(worker->launch->arguments);
    Fiber* const fiber = currentFiber();
    Warp& warp = *fiber->warp;
    Worker& self = *worker;
    RunningBlock& block = currentBlock();
    const uint32_t bit = 1u << fiber->lane;
    checkThreadEnd(*fiber);
    checkWaited(*fiber);
    warp.live &= ~bit;
    warp.runnable &= ~bit;
    self.live--;
    block.live--;
    if (block.live == 0)
        checkBlockEnd(block);
    if (self.live == 0)
        endCluster(self);
    if (block.live != 0 && block.barred == block.live)
        releaseBarrier(block);
    completeClusterPhase();
    // Lanes that were waiting for this one only can go on.
    for (uint32_t rest = warp.arrived; rest != 0; rest &= rest - 1)
    {
        if (tryRelease(warp, warp.fibers[__builtin_ctz(rest)].mask))
            break;
    }
    Fiber* const next = pickAnybody(fiber);
    openFor(*next);
    wpk_emulator_thread = next;
    leaveTo(next->stack);
}
