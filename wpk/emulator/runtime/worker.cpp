// A worker executes blocks: their memory, and how each begins and ends.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>

#include "context_switch.h"
#include "state.h"

namespace wpk::emulator
{

namespace
{

constexpr size_t kGuardBytes = 16ul << 20; // of address space, on either side
constexpr size_t kSharedAlignment = 1024;  // WPK_SHARED promises it
constexpr uint8 kUnowned = 0xc5;           // between the end of shared memory and its guard

char* reserve(size_t bytes)
{
    void* const place = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return place == MAP_FAILED ? nullptr : static_cast<char*>(place);
}

bool allow(char* place, size_t bytes)
{
    return mprotect(place, bytes, PROT_READ | PROT_WRITE) == 0;
}

// Each stack lies above a page that faults, so that an overflow is seen.
bool growStacks(Worker& worker, size_t count)
{
    if (worker.stackCount >= count)
        return true;
    if (worker.stacks != nullptr)
        munmap(worker.stacks, worker.stackCount * Worker::kStackBytes);
    worker.stackCount = 0;
    worker.stacks = reserve(count * Worker::kStackBytes);
    if (worker.stacks == nullptr)
        return false;
    for (size_t i = 0; i < count; ++i)
    {
        char* const lowest = worker.stacks + i * Worker::kStackBytes + Worker::kPageBytes;
        if (!allow(lowest, Worker::kStackBytes - Worker::kPageBytes))
            return false;
    }
    worker.stackCount = count;
    return true;
}

bool mapShared(Worker& worker)
{
    if (worker.sharedEnd != nullptr)
        return true;
    char* const place = reserve(kMaximumSharedBytes + 2 * kGuardBytes);
    if (place == nullptr || !allow(place + kGuardBytes, kMaximumSharedBytes))
        return false;
    worker.sharedEnd = place + kGuardBytes + kMaximumSharedBytes;
    return true;
}

struct ThreadLocalIndex
{
    unsigned long module, offset;
};
extern "C" void* __tls_get_addr(ThreadLocalIndex*);

void beginBlock(Worker& self, uint64 number)
{
    Launch& launch = *self.launch;
    const uint32 threads = static_cast<uint32>(self.fibers.size());
    self.block.index = {static_cast<uint32>(number % launch.grid.x),
        static_cast<uint32>(number / launch.grid.x % launch.grid.y),
        static_cast<uint32>(number / launch.grid.x / launch.grid.y)};
    self.live = threads;
    self.barred = self.idlePolls = 0;
    self.unfenced = false;
    self.random = (launch.seed + number) * 0x9e3779b97f4a7c15ull + 1;
    self.tensorCopies.clear();
    for (uint32 i = 0; i < self.warps.size(); ++i)
    {
        const uint32 lanes = threads - i * 32 < 32 ? threads - i * 32 : 32;
        Warp& warp = self.warps[i];
        warp.live = warp.runnable = lanes == 32 ? ~0u : (1u << lanes) - 1;
        warp.arrived = warp.barred = 0;
        warp.wgmmas.clear();
        warp.wgmmaGroups.clear();
    }
    for (uint32 i = 0; i < threads; ++i)
    {
        // Tops are staggered, or the hot lines of all stacks would fall into the same few cache sets.
        constexpr size_t kStagger = 192, kStaggers = 64;
        char* const top = self.stacks + (i + 1) * Worker::kStackBytes - (i % kStaggers) * kStagger;
        self.fibers[i].stack = prepareStack(top);
    }
    for (FiberChecks& checks : self.checks)
    {
        checks.copies.clear();
        checks.groups.clear();
        checks.accesses.clear();
        checks.stored = checks.fenced = false;
    }
    if (self.has(kPoison))
    {
        memset(self.block.shared, 0xff, launch.sharedBytes);
        memset(self.block.shared + launch.sharedBytes, kUnowned,
            static_cast<size_t>(self.sharedEnd - self.block.shared) - launch.sharedBytes);
        if (launch.staticBytes != 0)
            memset(self.staticShared, 0xff, launch.staticBytes);
    }
}

void checkEndOfShared(Worker& self)
{
    if (!self.has(kPoison) || self.launch->failed)
        return;
    const char* const end = self.block.shared + self.block.sharedBytes;
    for (const char* place = end; place < self.sharedEnd; ++place)
    {
        if (static_cast<uint8>(*place) == kUnowned)
            continue;
        if (self.launch->failed.exchange(true))
            return;
        const emulated::Index3& block = self.block.index;
        snprintf(self.launch->message, self.launch->messageBytes,
            "illegal address: a write to shared memory %zu bytes behind its %u bytes [block (%u, %u, %u)]",
            static_cast<size_t>(place - end), self.block.sharedBytes, block.x, block.y, block.z);
        return;
    }
}

void describe(Launch& launch, const char* what)
{
    if (!launch.failed.exchange(true))
        snprintf(launch.message, launch.messageBytes, "%s", what);
}

} // namespace

void prepareWorker(Worker& self, Launch& launch)
{
    const uint32 threads = launch.block.x * launch.block.y * launch.block.z;
    self.launch = &launch;
    self.statistics = Statistics();
    if (!growStacks(self, threads) || !mapShared(self))
        return describe(launch, "out of memory for thread stacks");
    const size_t room = (launch.sharedBytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
    self.block = {{0, 0, 0}, launch.block, launch.grid, self.sharedEnd - room, launch.sharedBytes};
    self.fibers.resize(threads);
    self.warps.resize((threads + 31) / 32);
    self.checks.resize(launch.modes != 0 ? threads : 0);
    for (uint32 i = 0; i < self.warps.size(); ++i)
    {
        self.warps[i].fibers = &self.fibers[i * 32];
        self.warps[i].index = i;
    }
    for (uint32 i = 0; i < threads; ++i)
    {
        Fiber& fiber = self.fibers[i];
        fiber.index = {i % launch.block.x, i / launch.block.x % launch.block.y, i / launch.block.x / launch.block.y};
        fiber.lane = i % 32;
        fiber.block = &self.block;
        fiber.warp = &self.warps[i / 32];
        fiber.checks = launch.modes != 0 ? &self.checks[i] : nullptr;
    }
    ThreadLocalIndex index{launch.staticModule, 0};
    self.staticShared = launch.staticBytes != 0 ? static_cast<char*>(__tls_get_addr(&index)) : nullptr;
}

void runBlocks(Worker& self)
{
    Launch& launch = *self.launch;
    while (!launch.failed.load(std::memory_order_relaxed))
    {
        const uint64 number = launch.nextBlock.fetch_add(1);
        if (number >= launch.blocks)
            break;
        beginBlock(self, number);
        Fiber& first = self.fibers[0];
        wpk_emulator_thread = &first;
        wpk_emulator_switch(&self.returnStack, first.stack);
        wpk_emulator_thread = nullptr;
        checkEndOfShared(self);
    }
}

bool findShared(unsigned long address, size_t bytes, uint32* offset)
{
    const Worker& self = *worker;
    const unsigned long dynamic = reinterpret_cast<unsigned long>(self.block.shared);
    const unsigned long fixed = reinterpret_cast<unsigned long>(self.staticShared);
    if (address >= dynamic && address + bytes <= dynamic + self.block.sharedBytes)
    {
        *offset = static_cast<uint32>(address - dynamic);
        return true;
    }
    if (fixed != 0 && address >= fixed && address + bytes <= fixed + self.launch->staticBytes)
    {
        *offset = static_cast<uint32>(address - fixed);
        return true;
    }
    return false;
}

} // namespace wpk::emulator
