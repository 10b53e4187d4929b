// Tensor copies out of shared memory, in groups of a thread; and the fence in front of what reads shared memory
// asynchronously.
#include <cstring>

#include "state.h"

namespace wpk::emulator
{

void noteSharedWrite(uint32 offset, uint32 bytes)
{
    const Fiber& fiber = *currentFiber();
    RunningBlock& block = currentBlock();
    if (block.writers.empty() || fiber.checks == nullptr)
        return;
    const size_t thread = static_cast<size_t>(&fiber - worker->fibers.data()) - block.firstFiber;
    const uint16 writer = static_cast<uint16>(thread + 1);
    for (uint32 chunk = offset / kChunkBytes; chunk <= (offset + bytes - 1) / kChunkBytes; ++chunk)
    {
        if (block.writers[chunk] == writer)
            continue;
        block.writers[chunk] = writer;
        fiber.checks->unfencedChunks.push_back(chunk);
    }
}

void checkFenced(const RunningBlock& block, uint32 offset, uint32 bytes, const char* what)
{
    if (block.writers.empty())
        return;
    for (uint32 chunk = offset / kChunkBytes; chunk <= (offset + bytes - 1) / kChunkBytes; ++chunk)
    {
        if (block.writers[chunk] != 0)
            fail("%s reads shared memory at byte %u that thread %d wrote without fenceAsyncProxy", what,
                chunk * kChunkBytes, block.writers[chunk] - 1);
    }
}

void checkThreadEnd(Fiber& fiber)
{
    if (fiber.checks != nullptr && !fiber.checks->asyncStores.pending.empty())
        fail("a thread ends while its tensor stores are under way: waitStores is missing");
    if (!fiber.warp->wgmmas.pending.empty())
        fail("a thread ends while products are under way: waitWgmma is missing");
}

} // namespace wpk::emulator

using namespace wpk::emulator;

WPK_API void wpk_emulator_tensor_store(const void* map, const int* coordinates, int rank, unsigned long source)
{
    uint32_t offset;
    checkBox(map, coordinates, rank, false, source, "storeTensor");
    if (!findShared(source, boxBytes(map), &offset))
        fail("storeTensor: the box does not lie in the shared memory of this block");
    checkFenced(currentBlock(), offset, static_cast<uint32_t>(boxBytes(map)), "storeTensor");
    AsyncStore store{source, map, {}};
    memcpy(store.coordinates, coordinates, sizeof(int) * static_cast<size_t>(rank));
    if (!worker->has(kLateCopies))
        return storeBox(store, currentBlock());
    currentFiber()->checks->asyncStores.pending.push_back(store);
    yieldSometimes();
}

WPK_API void wpk_emulator_commit_stores()
{
    if (worker->has(kLateCopies))
        currentFiber()->checks->asyncStores.commit();
}

WPK_API void wpk_emulator_wait_stores(int pending)
{
    if (!worker->has(kLateCopies))
        return;
    currentFiber()->checks->asyncStores.wait(
        static_cast<size_t>(pending), [](const AsyncStore& store) { storeBox(store, currentBlock()); });
}

WPK_API void wpk_emulator_proxy_fence()
{
    const Fiber& fiber = *currentFiber();
    RunningBlock& block = currentBlock();
    if (fiber.checks == nullptr || block.writers.empty())
        return;
    const size_t thread = static_cast<size_t>(&fiber - worker->fibers.data()) - block.firstFiber;
    for (uint32_t chunk : fiber.checks->unfencedChunks)
    {
        if (block.writers[chunk] == thread + 1)
            block.writers[chunk] = 0;
    }
    fiber.checks->unfencedChunks.clear();
}
