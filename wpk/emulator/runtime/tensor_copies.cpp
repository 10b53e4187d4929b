// Barriers in shared memory that count arrivals and bytes, and the tensor copies that they wait for (sm_90).
#include <cstring>

#include <wpk/kernels/tma.cuh>

#include "state.h"

using namespace wpk;
using namespace wpk::emulator;
using namespace wpk::emulated;

namespace
{

// The eight bytes of a barrier. A phase ends when no arrival and no byte is outstanding.
struct Barrier
{
    int32_t bytes;    // announced and not landed
    uint16_t pending; // arrivals still to come
    uint16_t count : 15;
    uint16_t phase : 1;
};
static_assert(sizeof(Barrier) == 8);

Barrier& barrierAt(unsigned long address)
{
    uint32 offset;
    if (address % 8 != 0)
        fail("a barrier at %p is not 8-byte aligned", reinterpret_cast<void*>(address));
    if (!findShared(address, 8, &offset))
        fail("a barrier at %p is not in shared memory", reinterpret_cast<void*>(address));
    return *reinterpret_cast<Barrier*>(address);
}

void completePhase(Barrier& barrier)
{
    if (barrier.pending != 0 || barrier.bytes != 0)
        return;
    barrier.pending = barrier.count;
    barrier.phase ^= 1;
    worker->progress++;
}

// Copies one row of the box, `bytes` long, into swizzled shared memory; zero where the tensor ends.
void landRow(const TensorMap& map, const char* row, int64 column, unsigned long offset, int bytes)
{
    const unsigned long mask = map.swizzle == 0 ? 0 : static_cast<unsigned long>(map.swizzle / 16 - 1);
    for (int chunk = 0; chunk < bytes; chunk += 16)
    {
        unsigned long place = offset + static_cast<unsigned long>(chunk);
        place ^= (place >> 7 & mask) << 4;
        char* const target = worker->block.shared + place;
        memset(target, 0, 16);
        for (int byte = 0; byte < 16 && row != nullptr; byte += map.elementBytes)
        {
            const int64 at = column + (chunk + byte) / map.elementBytes;
            if (at < 0 || at >= map.extents[0])
                continue;
            memcpy(target + byte, row + at * map.elementBytes, static_cast<size_t>(map.elementBytes));
        }
    }
}

int boxRows(const TensorMap& map)
{
    int rows = 1;
    for (int d = 1; d < map.rank; ++d)
        rows *= map.box[d];
    return rows;
}

void land(const TensorCopy& copy)
{
    const TensorMap& map = *static_cast<const TensorMap*>(copy.map);
    const int bytes = map.box[0] * map.elementBytes, rows = boxRows(map);
    const unsigned long start = copy.target - reinterpret_cast<unsigned long>(worker->block.shared);
    for (int row = 0; row < rows; ++row)
    {
        const char* source = static_cast<const char*>(map.base);
        int rest = row;
        for (int d = 1; d < map.rank; ++d)
        {
            const int64 at = copy.coordinates[d] + rest % map.box[d];
            rest /= map.box[d];
            if (at < 0 || at >= map.extents[d])
                source = nullptr;
            if (source != nullptr)
                source += at * map.strides[d - 1];
        }
        landRow(map, source, copy.coordinates[0], start + static_cast<unsigned long>(row) * bytes, bytes);
    }
    Barrier& barrier = barrierAt(copy.barrier);
    barrier.bytes -= bytes * rows;
    completePhase(barrier);
    worker->progress++;
}

void checkTensorCopy(const TensorCopy& copy)
{
    const TensorMap& map = *static_cast<const TensorMap*>(copy.map);
    const int bytes = map.box[0] * map.elementBytes;
    const unsigned long alignment = map.swizzle == 0 ? 128 : static_cast<unsigned long>(map.swizzle) * 8;
    uint32 offset;
    if (map.rank != copy.rank)
        fail("copyTensor: %d coordinates for a map of rank %d", copy.rank, map.rank);
    if (bytes % 16 != 0 || (map.swizzle != 0 && bytes > map.swizzle))
    {
        fail("copyTensor: rows of %d bytes with a swizzle of %d", bytes, map.swizzle);
    }
    if (!findShared(copy.target, static_cast<size_t>(bytes * boxRows(map)), &offset))
    {
        fail("copyTensor: the target is not in dynamic shared memory");
    }
    if (offset % alignment != 0)
        fail("copyTensor: the target is not aligned to %lu bytes", alignment);
}

} // namespace

namespace wpk::emulator
{

bool landTensorCopy()
{
    Worker& self = *worker;
    if (self.tensorCopies.empty())
        return false;
    const size_t chosen = self.draw() % self.tensorCopies.size();
    const TensorCopy copy = self.tensorCopies[chosen];
    self.tensorCopies.erase(self.tensorCopies.begin() + static_cast<long>(chosen));
    land(copy);
    return true;
}

} // namespace wpk::emulator

WPK_API void wpk_emulator_mbarrier_init(unsigned long barrier, int count)
{
    Barrier& state = barrierAt(barrier);
    if (count < 1 || count > 0x7fff)
        fail("a barrier for %d arrivals", count);
    state.bytes = 0;
    state.pending = static_cast<uint16_t>(count);
    state.count = static_cast<uint16_t>(count);
    state.phase = 0;
}

WPK_API void wpk_emulator_mbarrier_arrive(unsigned long barrier, int transaction_bytes)
{
    Barrier& state = barrierAt(barrier);
    if (state.pending == 0)
        fail("more arrivals at a barrier than its count of %u", unsigned{state.count});
    state.bytes += transaction_bytes;
    state.pending--;
    const wpk::uint64 before = worker->progress;
    completePhase(state);
    // Whoever waited for this phase may run before this thread does anything else.
    constexpr int kYields = 3;
    if (worker->has(kRandomOrder) && worker->progress != before)
    {
        for (int i = 0; i < kYields; ++i)
            yieldNow();
    }
}

WPK_API void wpk_emulator_mbarrier_wait(unsigned long barrier, int parity)
{
    Worker& self = *worker;
    const volatile Barrier& state = barrierAt(barrier);
    while (state.phase == (parity & 1))
    {
        if (self.progress != self.polledProgress)
        {
            self.polledProgress = self.progress;
            self.idlePolls = 0;
        }
        // When all fibers have polled in vain, only a pending copy can help.
        if (++self.idlePolls > 4 * self.live + 64)
        {
            if (!landTensorCopy())
                fail("deadlock: every runnable thread waits at a barrier in shared memory");
            self.idlePolls = 0;
        }
        yieldNow();
    }
}

WPK_API void wpk_emulator_tensor_copy(
    unsigned long target, const void* map, unsigned long barrier, const int* coordinates, int rank)
{
    TensorCopy copy{target, barrier, map, {}, rank};
    memcpy(copy.coordinates, coordinates, sizeof(int) * static_cast<size_t>(rank));
    checkTensorCopy(copy);
    if (!worker->has(kLateCopies))
        return land(copy);
    const TensorMap& layout = *static_cast<const TensorMap*>(map);
    const size_t bytes = static_cast<size_t>(layout.box[0]) * layout.elementBytes * boxRows(layout);
    memset(reinterpret_cast<void*>(target), 0xff, bytes);
    worker->tensorCopies.push_back(copy);
}
