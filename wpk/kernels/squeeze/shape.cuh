// The sizes of a squeeze (wpk/schedules/squeeze.cuh), and where a block has what in shared memory.
#pragma once

#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/portable.cuh>

namespace wpk
{

namespace detail
{

constexpr int kSqueezeRun = 8; // channels that are handled together

// Sizes, and where things lie in shared memory; the schedule's shared_bytes are those of all together.
template <class Problem, class Schedule>
struct SqueezeShape
{
    using Weight = typename Problem::Down::Type;
    static constexpr int run = kSqueezeRun, threads = Schedule::threads, blocks = Schedule::blocks;
    static constexpr bool isStaged = Schedule::staged != 0, byPixels = Schedule::by_pixels != 0;
    static constexpr bool isKept = Schedule::kept != 0;
    static constexpr bool scales = Problem::places > 1;
    static constexpr int weightRuns = ceilDivide(Problem::c, run), hiddenRuns = ceilDivide(Problem::hidden, run);
    static constexpr int gateRuns = ceilDivide(Problem::k + Problem::rowPadding, run);
    static constexpr int channelRuns = scales ? maxOf(weightRuns, gateRuns) : weightRuns;
    static constexpr int slice = ceilDivide(channelRuns, blocks); // runs that a block multiplies
    static constexpr int gateSlice = ceilDivide(scales ? channelRuns : gateRuns, blocks); // runs of gates that it has
    static constexpr int pooled = byPixels ? channelRuns : slice;                         // runs that it pools
    static constexpr int pixels = byPixels ? ceilDivide(Problem::pixels, blocks) : Problem::pixels;
    static constexpr int columns = minOf(pooled, threads), lanes = threads / columns;
    static constexpr bool sharesGates = byPixels && scales;
    static constexpr int stored = sharesGates ? channelRuns : gateSlice; // runs of channels that it writes

    static constexpr int lanePitch = pooled * run + 4; // floats; of many lanes the same channel lies in several banks
    static constexpr int sumsAt = Problem::pixelsFastest ? 0 : lanes * lanePitch;
    static constexpr int rowAt = sumsAt + pooled * run;
    static constexpr int partAt = rowAt + slice * run;
    static constexpr int hiddenAt = partAt + hiddenRuns * run;
    static constexpr int gatesAt = hiddenAt + hiddenRuns * run;
    // What all blocks send: parts of the hidden sums; where they pool by pixels, sums of this block's slice, and gates.
    static constexpr int allPartsAt = gatesAt + gateSlice * run;
    static constexpr int allSumsAt = allPartsAt + (blocks > 1 ? blocks * hiddenRuns * run : 0);
    static constexpr int allGatesAt = allSumsAt + (byPixels ? blocks * slice * run : 0);
    static constexpr int barriersAt = allGatesAt + (sharesGates ? gateSlice * blocks * run : 0);
    static constexpr int floats = barriersAt + (blocks > 1 ? 8 : 0);
    static constexpr int downStride = isStaged ? (slice + 1) * run : weightRuns * run;
    static constexpr int upStride = (hiddenRuns + isStaged) * run;
    static constexpr int upAt = Problem::hidden * downStride; // elements
    static constexpr int stagedElements = isStaged ? upAt + gateSlice * run * upStride : 0;
    static constexpr int keptAt = floats * 4 + stagedElements * static_cast<int>(sizeof(Weight)); // in bytes
    static constexpr int keptElements = isKept ? pixels * pooled * run : 0;
    static_assert(Schedule::shared_bytes == keptAt + keptElements * static_cast<int>(sizeof(typename Problem::X::Type)),
        "Python and C++ count the same shared memory");
};

} // namespace detail

} // namespace wpk
