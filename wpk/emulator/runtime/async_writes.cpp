// Asynchronous writes into shared memory, whose bytes a barrier counts (sm_90): tensor copies, plain copies of
// many bytes, and stores into another block of the cluster.
#include <cstring>

#include "early_launch.h"

namespace wpk::emulator
{

namespace
{

RunningBlock& targetBlock(const AsyncWrite& write, const char* what)
{
    uint32 offset;
    RunningBlock* const block = blockAt(write.target, static_cast<size_t>(write.bytes), &offset);
    if (block == nullptr)
        fail("%s: the target does not lie in dynamic shared memory", what);
    if (blockAt(write.barrier, 8, &offset) != block || offset % 8 != 0)
        fail("%s: the barrier that counts it does not lie, 8-byte aligned, in the block of the target", what);
    return *block;
}

void land(const AsyncWrite& write)
{
    RunningBlock& block = targetBlock(write, "an asynchronous write");
    uint32 offset;
    const RunningBlock* const from =
        write.kind == AsyncWrite::kBytes
            ? blockAt(reinterpret_cast<unsigned long>(write.source), static_cast<size_t>(write.bytes), &offset)
            : nullptr;
    if (from != nullptr && from->live == 0)
        fail("a copy reads the shared memory of block %u of the cluster, which has ended", from->rank);
    switch (write.kind)
    {
    case AsyncWrite::kBox:
        loadBox(write, block);
        break;
    case AsyncWrite::kBytes:
        memcpy(reinterpret_cast<void*>(write.target), write.source, static_cast<size_t>(write.bytes));
        break;
    case AsyncWrite::kValue:
        memcpy(reinterpret_cast<void*>(write.target), write.value, static_cast<size_t>(write.bytes));
        break;
    }
    landBytes(write.barrier, write.bytes);
}

// What another thread of its block wrote there counts no longer.
void forgetWriters(const AsyncWrite& write, RunningBlock& block)
{
    const size_t first = (write.target - reinterpret_cast<unsigned long>(block.shared)) / kChunkBytes;
    const size_t count = (static_cast<size_t>(write.bytes) + kChunkBytes - 1) / kChunkBytes;
    for (size_t i = first; i < first + count && i < block.writers.size(); ++i)
        block.writers[i] = 0;
}

} // namespace

void issue(const AsyncWrite& write, const char* what)
{
    RunningBlock& block = targetBlock(write, what);
    requireNoBarrier(write.target, static_cast<uint32>(write.bytes));
    if (&block != &currentBlock())
        liveBlockAt(write.target, static_cast<size_t>(write.bytes), what);
    if (!worker->has(kLateCopies))
        return land(write);
    memset(reinterpret_cast<void*>(write.target), 0xff, static_cast<size_t>(write.bytes));
    forgetWriters(write, block);
    worker->asyncWrites.push_back(write);
    yieldSometimes();
}

bool landAsyncWrite()
{
    Worker& self = *worker;
    if (self.asyncWrites.empty())
        return false;
    const size_t chosen = self.draw() % self.asyncWrites.size();
    const AsyncWrite write = self.asyncWrites[chosen];
    self.asyncWrites.erase(self.asyncWrites.begin() + static_cast<long>(chosen));
    land(write);
    return true;
}

void checkBlockEnd(const RunningBlock& block)
{
    uint32 offset;
    for (const AsyncWrite& write : worker->asyncWrites)
    {
        if (blockAt(write.target, static_cast<size_t>(write.bytes), &offset) == &block)
            fail("a block ends while %d bytes are under way into its shared memory, at byte %u", write.bytes, offset);
    }
}

} // namespace wpk::emulator

using namespace wpk::emulator;

WPK_API void wpk_emulator_tensor_copy(unsigned long target, const void* map, unsigned long barrier,
    const int* coordinates, int rank, const uint16_t* offsets, uint32_t blocks)
{
    const char* const what = offsets == nullptr ? "copyTensor" : "copyPixels";
    checkBox(map, coordinates, rank, offsets != nullptr, target, what);
    if (offsets != nullptr)
        checkPixels(map, coordinates);
    const wpk::TensorMap& copied = *static_cast<const wpk::TensorMap*>(map);
    AsyncWrite write{AsyncWrite::kBox, target, barrier, nullptr, static_cast<int>(boxBytes(map)), {}, {}, {}, copied};
    memcpy(write.coordinates, coordinates, sizeof(int) * static_cast<size_t>(rank));
    for (int d = 0; offsets != nullptr && d < rank - 2; ++d)
        write.offsets[d] = offsets[d];
    if (blocks == 0)
        return issue(write, what);
    // To the same place in every block of the mask.
    for (; blocks != 0; blocks &= blocks - 1)
    {
        AsyncWrite copy = write;
        copy.target = wpk_emulator_cluster_address(target, __builtin_ctz(blocks));
        copy.barrier = wpk_emulator_cluster_address(barrier, __builtin_ctz(blocks));
        issue(copy, what);
    }
}

WPK_API void wpk_emulator_bulk_copy(unsigned long target, const void* source, int bytes, unsigned long barrier)
{
    const unsigned long from = reinterpret_cast<unsigned long>(source);
    uint32_t offset;
    if (bytes <= 0 || bytes % 16 != 0 || target % 16 != 0 || from % 16 != 0)
        fail("a bulk copy of %d bytes from %p: bytes and addresses are multiples of 16", bytes, source);
    if (isClosed(source))
        fail("a bulk copy: memory of the kernels in front is copied before waitForPrevious");
    if (findShared(from, static_cast<size_t>(bytes), &offset))
        checkFenced(currentBlock(), offset, static_cast<uint32_t>(bytes), "a bulk copy");
    issue({AsyncWrite::kBytes, target, barrier, source, bytes, {}, {}, {}, {}}, "a bulk copy");
}

WPK_API void wpk_emulator_async_store(unsigned long target, const void* value, int bytes, unsigned long barrier)
{
    AsyncWrite write{AsyncWrite::kValue, target, barrier, nullptr, bytes, {}, {}, {}, {}};
    if (target % static_cast<unsigned long>(bytes) != 0)
        fail("an asynchronous store of %d bytes is not aligned to them", bytes);
    memcpy(write.value, value, static_cast<size_t>(bytes));
    issue(write, "an asynchronous store");
}
