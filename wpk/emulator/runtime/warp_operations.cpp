// Shuffles, votes, reductions, and matrices to registers and back, for all lanes of a warp at once.
#include <cmath>
#include <cstring>

#include "state.h"

WPK_API float rsqrtf(float value) noexcept
{
    return 1.0f / sqrtf(value);
}

namespace wpk::emulator
{

using namespace emulated;

void runShuffle(Warp& warp, uint32 mask)
{
    for (uint32 rest = mask; rest != 0; rest &= rest - 1)
    {
        auto& own = *static_cast<ShuffleOperands*>(warp.fibers[__builtin_ctz(rest)].operands);
        // A source outside the mask gives an undefined value on a GPU; here the lane keeps its own.
        if ((mask >> own.source & 1) == 0)
            continue;
        own.result = static_cast<ShuffleOperands*>(warp.fibers[own.source].operands)->value;
    }
}

void runVote(Warp& warp, uint32 mask)
{
    uint32 votes = 0;
    for (uint32 rest = mask; rest != 0; rest &= rest - 1)
    {
        const int lane = __builtin_ctz(rest);
        votes |= (static_cast<VoteOperands*>(warp.fibers[lane].operands)->predicate != 0 ? 1u : 0u) << lane;
    }
    for (uint32 rest = mask; rest != 0; rest &= rest - 1)
    {
        static_cast<VoteOperands*>(warp.fibers[__builtin_ctz(rest)].operands)->result = votes;
    }
}

void runReduce(Warp& warp, uint32 mask)
{
    if (mask != ~0u)
        fail("warp reduction: only lanes %08x take part", mask);
    float values[32], next[32];
    for (int lane = 0; lane < 32; ++lane)
        values[lane] = static_cast<ReduceOperands*>(warp.fibers[lane].operands)->value;
    const bool maximum = static_cast<ReduceOperands*>(warp.fibers[0].operands)->isMaximum != 0;
    for (int distance = 16; distance > 0; distance /= 2)
    {
        for (int lane = 0; lane < 32; ++lane)
        {
            const float own = values[lane], other = values[lane ^ distance];
            next[lane] = maximum ? fmaxf(own, other) : own + other;
        }
        memcpy(values, next, sizeof values);
    }
    for (int lane = 0; lane < 32; ++lane)
        static_cast<ReduceOperands*>(warp.fibers[lane].operands)->result = values[lane];
}

namespace
{

void countMatrixRows(const unsigned long (&rows)[32])
{
    for (int tile = 0; tile < 4; ++tile)
    {
        uint32 offsets[8];
        for (int row = 0; row < 8; ++row)
        {
            if (!findShared(rows[tile * 8 + row], 16, &offsets[row]))
                fail("loadMatrix: an address is not in shared memory");
        }
        countPhase(kMatrixLoad, offsets, 8, 16);
    }
}

} // namespace

void runLoadMatrix(Warp& warp, uint32 mask)
{
    if (mask != ~0u)
        fail("loadMatrix: only lanes %08x take part", mask);
    unsigned long rows[32];
    uint32* registers[32];
    for (int lane = 0; lane < 32; ++lane)
    {
        auto& operands = *static_cast<LoadMatrixOperands*>(warp.fibers[lane].operands);
        rows[lane] = operands.row;
        registers[lane] = operands.registers;
        if (operands.row % 16 != 0)
            fail("loadMatrix: the row address of lane %d is not 16-byte aligned", lane);
    }
    if (worker->has(kCountBanks))
        countMatrixRows(rows);
    const bool transposed = static_cast<LoadMatrixOperands*>(warp.fibers[0].operands)->transposed != 0;
    for (int j = 0; j < 4; ++j)
    {
        uint16 tile[8][8];
        for (int i = 0; i < 8; ++i)
            memcpy(tile[i], reinterpret_cast<const void*>(rows[j * 8 + i]), 16);
        for (int lane = 0; lane < 32; ++lane)
        {
            const int group = lane >> 2, pair = (lane & 3) * 2;
            if (transposed)
            {
                registers[lane][j] = tile[pair][group] | static_cast<uint32>(tile[pair + 1][group]) << 16;
            }
            else
            {
                memcpy(&registers[lane][j], &tile[group][pair], 4);
            }
        }
    }
}

void runStoreMatrices(Warp& warp, uint32 mask)
{
    if (mask != ~0u)
        fail("storeMatrices: only lanes %08x take part", mask);
    const StoreMatricesOperands* lanes[32];
    for (int lane = 0; lane < 32; ++lane)
        lanes[lane] = static_cast<StoreMatricesOperands*>(warp.fibers[lane].operands);
    for (int lane = 0; lane < static_cast<int>(lanes[0]->tiles) * 8; ++lane)
    {
        if (reinterpret_cast<unsigned long>(lanes[lane]->at) % 16 != 0)
            fail("storeMatrices: the row address of lane %d is not 16-byte aligned", lane);
        for (int pair = 0; pair < 4; ++pair)
            lanes[lane]->row[pair] = lanes[lane % 8 * 4 + pair]->words[lane / 8];
    }
}

} // namespace wpk::emulator
