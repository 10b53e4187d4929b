// Where a team of blocks that shares the units of a recurrence has its states, and products of its weights with them.
//
// Which k a place of a fragment has is free as long as A and B agree: a lane takes eight neighbours of a row, 16
// bytes, as its part of two products.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/mma/mma.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

namespace detail
{

// Where a team's states and partial sums lie in shared memory.
template <class Problem, class Schedule>
struct RecurrentTeam
{
    using Type = typename Problem::R::Type;
    static constexpr int hidden = Problem::hidden, gates = Problem::gates, columns = Schedule::sequences;
    static constexpr int units = Schedule::units, warps = Schedule::warps, blocks = hidden / units;
    static constexpr int threads = warps * kWarpSize, kUnits = 16, kRun = 8; // units of a tile; neighbours of a lane
    static constexpr int tiles = gates * units / kUnits, columnTiles = columns / 8;
    static constexpr int runs = hidden / warps / (4 * kRun); // of a lane along a row: two products each
    static constexpr int stride = hidden + 32;               // of a sequence's states: rows of a warp's load lie apart
    static constexpr int sumStride = kUnits + 4;             // of a column of a tile's sums
    static constexpr int elements = units * columns, own = ceilDivide(elements, threads); // of a thread
    static constexpr bool isCluster = Schedule::exchange == 0;
    static constexpr int stateBytes = columns * stride * 2;
    static constexpr int sumBytes = warps * tiles * columns * sumStride * 4;
    static constexpr int handBytes = isCluster ? elements * 2 : 0;
    static_assert(sizeof(Type) == 2, "tensor cores multiply 16 bits here");
    static_assert(Schedule::shared_bytes == (isCluster ? 2 : 1) * stateBytes + sumBytes + handBytes,
        "the schedule's shared memory");

    static WPK_DEVICE Type* states(unsigned char* shared, int buffer)
    {
        return reinterpret_cast<Type*>(shared) + (isCluster ? buffer * columns * stride : 0);
    }
    static WPK_DEVICE float* sums(unsigned char* shared)
    {
        return reinterpret_cast<float*>(shared + (isCluster ? 2 : 1) * stateBytes);
    }
    // States on their way to the other blocks of a cluster: [column][unit].
    static WPK_DEVICE Type* hand(unsigned char* shared)
    {
        return reinterpret_cast<Type*>(shared + (isCluster ? 2 : 1) * stateBytes + sumBytes);
    }
};

// A warp's part of the block's rows of R, in registers.
template <class Team, class Problem>
struct RecurrentWeights
{
    using Type = typename Team::Type;
    uint32 words[Team::runs][2][Team::tiles][4]; // of two products to a run

    static WPK_DEVICE int firstColumn(int run)
    {
        const int part = warpIndex() * (Team::hidden / Team::warps);
        return part + (run * 4 + laneIndex() % 4) * Team::kRun;
    }

    WPK_DEVICE void load(const void* r, int firstUnit)
    {
        WPK_UNROLL
        for (int run = 0; run < Team::runs; ++run)
        {
            WPK_UNROLL
            for (int tile = 0; tile < Team::tiles; ++tile)
            {
                const int gate = tile % Team::gates, unit = firstUnit + tile / Team::gates * Team::kUnits;
                WPK_UNROLL
                for (int half = 0; half < 2; ++half)
                {
                    const int row = gate * Team::hidden + unit + laneIndex() / 4 + half * 8;
                    const int64 at = Problem::R::offset(row, firstColumn(run));
                    const auto eight = wpk::load<Type, Team::kRun>(static_cast<const Type*>(r) + at);
                    uint32 pairs[4];
                    memcpy(pairs, &eight, sizeof(pairs));
                    words[run][0][tile][half] = pairs[0];
                    words[run][0][tile][half + 2] = pairs[1];
                    words[run][1][tile][half] = pairs[2];
                    words[run][1][tile][half + 2] = pairs[3];
                }
            }
        }
    }

    // The warp's sums, written to shared memory.
    WPK_DEVICE void multiply(const Type* states, float* sums) const
    {
        float acc[Team::tiles][Team::columnTiles][4] = {};
        WPK_UNROLL
        for (int run = 0; run < Team::runs; ++run)
        {
            uint32 b[2][Team::columnTiles][2];
            WPK_UNROLL
            for (int column = 0; column < Team::columnTiles; ++column)
            {
                const int at = (column * 8 + laneIndex() / 4) * Team::stride + firstColumn(run);
                const auto eight = wpk::load<Type, Team::kRun>(states + at);
                uint32 pairs[4];
                memcpy(pairs, &eight, sizeof(pairs));
                b[0][column][0] = pairs[0];
                b[0][column][1] = pairs[1];
                b[1][column][0] = pairs[2];
                b[1][column][1] = pairs[3];
            }
            mmaTile(Type{}, acc, words[run][0], b[0]);
            mmaTile(Type{}, acc, words[run][1], b[1]);
        }
        float* const own = sums + warpIndex() * (Team::tiles * Team::columns * Team::sumStride);
        const int row = laneIndex() / 4, pair = laneIndex() % 4 * 2;
        WPK_UNROLL
        for (int tile = 0; tile < Team::tiles; ++tile)
        {
            WPK_UNROLL
            for (int column = 0; column < Team::columnTiles; ++column)
            {
                WPK_UNROLL
                for (int i = 0; i < 4; ++i)
                {
                    const int at = (tile * Team::columns + column * 8 + pair + i % 2) * Team::sumStride;
                    store<float, 1>(own + at + row + i / 2 * 8, {{acc[tile][column][i]}});
                }
            }
        }
    }
};

} // namespace detail

} // namespace wpk
