// What is under way beside the threads: copies of many bytes into and out of shared memory, products of warpgroups.
#pragma once

#include <cstddef>
#include <vector>

#include <wpk/kernels/copies/tma.cuh>

namespace wpk::emulator
{

// A write into shared memory that has not landed yet; `barrier`, in the same block, counts its bytes.
struct AsyncWrite
{
    enum Kind
    {
        kBox,   // that `coordinates` and `offsets` give of the tensor that `map` describes
        kBytes, // at `source`
        kValue  // in `value`
    } kind;
    unsigned long target, barrier;
    const void* source;
    int bytes;
    int coordinates[5];
    int offsets[3];
    char value[16];
    TensorMap map; // a copy: the thread that asked may have ended, and its parameters with it
};

// What is committed in groups, and finished group by group.
template <typename T>
struct Groups
{
    std::vector<T> pending;
    std::vector<size_t> ends; // of each committed group in `pending`

    void commit()
    {
        ends.push_back(pending.size());
    }

    // Finishes all groups but the last `keep`.
    template <typename Finish>
    void wait(size_t keep, Finish finish)
    {
        if (ends.size() <= keep)
            return;
        const size_t done = ends.size() - keep, end = ends[done - 1];
        for (size_t i = 0; i < end; ++i)
            finish(pending[i]);
        pending.erase(pending.begin(), pending.begin() + static_cast<long>(end));
        ends.erase(ends.begin(), ends.begin() + static_cast<long>(done));
        for (size_t& each : ends)
            each -= end;
    }

    void clear()
    {
        pending.clear();
        ends.clear();
    }
};

// A box that is copied out of shared memory.
struct AsyncStore
{
    unsigned long source;
    const void* map;
    int coordinates[5];
};

struct WgmmaPending
{
    size_t target; // in Warp::wgmmaTargets
    emulated::WgmmaOperands operands;
    uint32 a[32][4]; // where A comes from registers
};

// Accumulators that products under way will write. Until then the registers hold NaN, the values are here.
struct WgmmaTarget
{
    float* registers[32];
    std::vector<float> values; // [lane][columns / 2]
    size_t pending;
};

} // namespace wpk::emulator
