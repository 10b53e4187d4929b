// A worker executes blocks, those of a cluster together: their memory, and how they begin and end.
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include <cstdio>
#include <cstring>

#include "context_switch.h"
#include "early_launch.h"

namespace wpk::emulator
{

using emulated::Index3;

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

bool mapShared(Worker& worker, size_t blocks)
{
    while (worker.sharedEnds.size() < blocks)
    {
        char* const place = reserve(kMaximumSharedBytes + 2 * kGuardBytes);
        if (place == nullptr || !allow(place + kGuardBytes, kMaximumSharedBytes))
            return false;
        worker.sharedEnds.push_back(place + kGuardBytes + kMaximumSharedBytes);
    }
    return true;
}

struct ThreadLocalIndex
{
    unsigned long module, offset;
};
extern "C" void* __tls_get_addr(ThreadLocalIndex*);

Index3 unflatten(uint32 number, const Index3& sizes)
{
    return {number % sizes.x, number / sizes.x % sizes.y, number / sizes.x / sizes.y};
}

uint32 count(const Index3& sizes)
{
    return sizes.x * sizes.y * sizes.z;
}

// Sanitizers report accesses to what lies around the shared memory, and forget the stacks of an earlier launch,
// whose functions may not have returned.
void tellSanitizers([[maybe_unused]] Worker& self)
{
#ifdef __SANITIZE_ADDRESS__
    ASAN_UNPOISON_MEMORY_REGION(self.stacks, self.stackCount * Worker::kStackBytes);
    for (const RunningBlock& block : self.blocks)
    {
        char* const lowest = block.sharedEnd - kMaximumSharedBytes;
        ASAN_POISON_MEMORY_REGION(lowest, kMaximumSharedBytes);
        if (!self.has(kPoison)) // which looks for writes behind it
            ASAN_UNPOISON_MEMORY_REGION(block.shared, block.sharedBytes);
        else
            ASAN_UNPOISON_MEMORY_REGION(block.shared, block.sharedEnd - block.shared);
    }
#endif
}

void beginMemory(Worker& self, RunningBlock& block)
{
    block.writers.assign(self.has(kLateCopies) ? block.sharedBytes / kChunkBytes + 1 : 0, 0);
    if (!self.has(kPoison))
        return;
    memset(block.shared, 0xff, block.sharedBytes);
    memset(block.shared + block.sharedBytes, kUnowned,
        static_cast<size_t>(block.sharedEnd - block.shared) - block.sharedBytes);
    if (self.launch->staticBytes != 0)
        memset(self.staticShared, 0xff, self.launch->staticBytes);
}

void beginWarp(Warp& warp)
{
    warp.live = warp.runnable = warp.lanes == 32 ? ~0u : (1u << warp.lanes) - 1;
    warp.arrived = warp.barred = warp.asleep = warp.clusterArrived = warp.clusterUnwaited = 0;
    warp.wgmmaFenced = false;
    warp.wgmmas.clear();
    warp.wgmmaTargets.clear();
}

// Consecutive clusters lie along x first, as blocks do; so do the blocks within one.
void beginCluster(Worker& self, uint64 number)
{
    const Launch& launch = *self.launch;
    const Index3 clusters{
        launch.grid.x / launch.together.x, launch.grid.y / launch.together.y, launch.grid.z / launch.together.z};
    const Index3 first{static_cast<uint32>(number % clusters.x) * launch.together.x,
        static_cast<uint32>(number / clusters.x % clusters.y) * launch.together.y,
        static_cast<uint32>(number / clusters.x / clusters.y) * launch.together.z};
    for (RunningBlock& block : self.blocks)
    {
        const Index3 place = unflatten(block.rank, launch.together);
        block.index = {first.x + place.x, first.y + place.y, first.z + place.z};
        block.live = block.threads;
        block.barred = 0;
        block.vote = block.voted = false;
        block.phases = 0;
        block.unfenced = false;
        memset(block.namedBarriers, 0, sizeof block.namedBarriers);
        beginMemory(self, block);
    }
    self.live = static_cast<uint32>(self.fibers.size());
    self.clusterPhases = 0;
    self.random = (launch.seed + number) * 0x9e3779b97f4a7c15ull + 1;
    self.asyncWrites.clear();
    self.barrierOrigins.clear();
    for (Warp& warp : self.warps)
        beginWarp(warp);
    for (size_t i = 0; i < self.fibers.size(); ++i)
    {
        // Tops are staggered, or the hot lines of all stacks would fall into the same few cache sets.
        constexpr size_t kStagger = 192, kStaggers = 64;
        char* const top = self.stacks + (i + 1) * Worker::kStackBytes - (i % kStaggers) * kStagger;
        self.fibers[i].stack = prepareStack(top);
    }
    for (FiberChecks& checks : self.checks)
        checks.clear();
}

void checkEndOfShared(const Worker& self, const RunningBlock& block)
{
    if (!self.has(kPoison) || self.launch->failed)
        return;
    const char* const end = block.shared + block.sharedBytes;
    for (const char* place = end; place < block.sharedEnd; ++place)
    {
        if (static_cast<uint8>(*place) == kUnowned)
            continue;
        if (self.launch->failed.exchange(true))
            return;
        snprintf(self.launch->message, self.launch->messageBytes,
            "illegal address: a write to shared memory %zu bytes behind its %u bytes [block (%u, %u, %u)]",
            static_cast<size_t>(place - end), block.sharedBytes, block.index.x, block.index.y, block.index.z);
        return;
    }
}

void describe(Launch& launch, const char* what)
{
    if (!launch.failed.exchange(true))
        snprintf(launch.message, launch.messageBytes, "%s", what);
}

} // namespace

namespace
{

void prepareBlock(Worker& self, uint32 rank, uint32 threads)
{
    const Launch& launch = *self.launch;
    const size_t room = (launch.sharedBytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
    const uint32 warps = (threads + 31) / 32;
    RunningBlock& block = self.blocks[rank];
    block.sharedEnd = self.sharedEnds[rank];
    static_cast<emulated::Block&>(block) = {
        {0, 0, 0}, launch.block, launch.grid, block.sharedEnd - room, launch.sharedBytes, rank, count(launch.cluster)};
    block.firstWarp = rank * warps;
    block.warps = warps;
    block.firstFiber = rank * threads;
    block.threads = threads;
    for (uint32 i = 0; i < warps; ++i)
    {
        Warp& warp = self.warps[block.firstWarp + i];
        warp.fibers = &self.fibers[block.firstFiber + i * 32];
        warp.lanes = threads - i * 32 < 32 ? threads - i * 32 : 32;
        warp.index = i;
        warp.place = block.firstWarp + i;
    }
    for (uint32 i = 0; i < threads; ++i)
    {
        Fiber& fiber = self.fibers[block.firstFiber + i];
        fiber.index = unflatten(i, launch.block);
        fiber.lane = i % 32;
        fiber.block = &block;
        fiber.warp = &self.warps[block.firstWarp + i / 32];
        fiber.checks = launch.modes != 0 ? &self.checks[block.firstFiber + i] : nullptr;
    }
}

} // namespace

void prepareWorker(Worker& self, Launch& launch)
{
    const uint32 threads = count(launch.block), blocks = count(launch.together);
    self.launch = &launch;
    self.statistics = Statistics();
    if (!growStacks(self, static_cast<size_t>(threads) * blocks) || !mapShared(self, blocks))
        return describe(launch, "out of memory for thread stacks");
    self.blocks.resize(blocks);
    self.fibers.resize(static_cast<size_t>(threads) * blocks);
    self.warps.resize(static_cast<size_t>((threads + 31) / 32) * blocks);
    self.checks.resize(launch.modes != 0 ? self.fibers.size() : 0);
    for (uint32 rank = 0; rank < blocks; ++rank)
        prepareBlock(self, rank, threads);
    tellSanitizers(self);
    ThreadLocalIndex index{launch.staticModule, 0};
    self.staticShared = launch.staticBytes != 0 ? static_cast<char*>(__tls_get_addr(&index)) : nullptr;
}

void runClusters(Worker& self)
{
    Launch& launch = *self.launch;
    while (!launch.failed.load(std::memory_order_relaxed))
    {
        const uint64 number = launch.nextCluster.fetch_add(1);
        if (number >= launch.clusters)
            break;
        beginCluster(self, number);
        beginEarlyCluster(self);
        Fiber& first = self.fibers[0];
        wpk_emulator_thread = &first;
        wpk_emulator_switch(&self.returnStack, first.stack);
        wpk_emulator_thread = nullptr;
        for (const RunningBlock& block : self.blocks)
            checkEndOfShared(self, block);
    }
}

} // namespace wpk::emulator
