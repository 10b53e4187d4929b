// How the blocks of a recurrence's team hand each other the states that they computed, rounded to R's type, in one of
// two buffers for every second step.
//   ClusterExchange: the team is a cluster, and each block writes its states into the shared memory of all.
//   GridExchange: the launch is cooperative; states go through global memory (L2), and blocks count their arrivals.
//   WordExchange: likewise, but each pair of states carries the number of its step, and readers wait for that.
#pragma once

#include <wpk/kernels/barriers/cluster.cuh>
#include <wpk/kernels/barriers/grid_barrier.cuh>
#include <wpk/kernels/copies/async_copy.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/sums/split_k.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

namespace detail
{

// A cluster hands states from shared memory to shared memory.
template <class Team, class Elements>
struct ClusterExchange
{
    using Type = typename Team::Type;
    unsigned char* shared;

    WPK_DEVICE ClusterExchange(unsigned char* memory, const Partials&) : shared(memory) {}
    WPK_DEVICE void begin() const
    {
        syncCluster(); // all blocks run, and have no state of sequences before
    }
    WPK_DEVICE void publish(const Elements& elements, int next) const
    {
        Type* const hand = Team::hand(shared);
        WPK_UNROLL
        for (int number = 0; number < Team::own; ++number)
        {
            if (elements.isElement(number))
            {
                const int unit = elements.unit(number) - elements.firstUnit;
                const Vector<Type, 1> one{{fromFloat<Type>(elements.h[number])}};
                store<Type, 1>(hand + elements.column(number) * Team::units + unit, one);
            }
        }
        __syncthreads(); // @hand_written
        constexpr int kPieces = Team::elements / Team::kRun, kAll = kPieces * Team::blocks;
        for (int item = static_cast<int>(threadIdx.x); item < kAll; item += Team::threads)
        {
            const int piece = item % kPieces, column = piece / (Team::units / Team::kRun);
            const int unit = piece % (Team::units / Team::kRun) * Team::kRun;
            const Type* const there = Team::states(shared, next) + column * Team::stride + elements.firstUnit + unit;
            storeCluster<Type, Team::kRun>(clusterAddress(sharedAddress(there), item / kPieces),
                load<Type, Team::kRun>(hand + piece * Team::kRun));
        }
        arriveCluster();
    }
    // Waits for the states of all blocks; `meanwhile` concerns this block alone.
    template <class Work>
    WPK_DEVICE void take(int, Work meanwhile) const
    {
        meanwhile();
        waitCluster(); // @states_arrived
    }
    WPK_DEVICE void end() const {}
};

// Blocks of a cooperative launch hand states through global memory.
template <class Team, class Elements>
struct GridExchange
{
    using Type = typename Team::Type;
    unsigned char* shared;
    Type* memory;
    int *counter, *left;
    int arrivals = 0;

    WPK_DEVICE GridExchange(unsigned char* to, const Partials& partials) : shared(to)
    {
        const int team = static_cast<int>(blockIdx.y);
        memory = static_cast<Type*>(partials.tiles) + team * (int64(2) * Team::columns * Team::hidden);
        counter = static_cast<int*>(partials.counters) + 2 * team;
        left = counter + 1;
    }
    // Nobody reads states of sequences before any more.
    WPK_DEVICE void begin()
    {
        if (arrivals == 0)
            return;
        arrive();
        if (threadIdx.x == 0)
            waitGrid(counter, arrivals);
    }
    WPK_DEVICE void publish(const Elements& elements, int next)
    {
        Type* const buffer = memory + next * (Team::columns * Team::hidden);
        WPK_UNROLL
        for (int number = 0; number < Team::own; ++number)
        {
            if (elements.isElement(number))
            {
                const Vector<Type, 1> one{{fromFloat<Type>(elements.h[number])}};
                store<Type, 1>(buffer + elements.column(number) * Team::hidden + elements.unit(number), one);
            }
        }
        arrive();
    }
    template <class Work>
    WPK_DEVICE void take(int next, Work meanwhile) const
    {
        if (threadIdx.x == 0)
            waitGrid(counter, arrivals); // @arrivals_awaited
        __syncthreads();
        const Type* const buffer = memory + next * (Team::columns * Team::hidden);
        constexpr int kPieces = Team::hidden / Team::kRun;
        for (int item = static_cast<int>(threadIdx.x); item < Team::columns * kPieces; item += Team::threads)
        {
            const int column = item / kPieces, unit = item % kPieces * Team::kRun;
            Type* const to = Team::states(shared, next) + column * Team::stride + unit;
            copyAsync<16>(sharedAddress(to), buffer + column * Team::hidden + unit);
        }
        commitCopies();
        meanwhile();
        waitCopies<0>();
        __syncthreads(); // @states_copied
    }
    WPK_DEVICE void arrive()
    {
        __syncthreads(); // @states_written
        arrivals += Team::blocks;
        if (threadIdx.x == 0)
            arriveGrid(counter);
    }
    WPK_DEVICE void end() const
    {
        if (threadIdx.x == 0)
            leaveGrid(counter, left, Team::blocks);
    }
};

// Blocks of a cooperative launch hand each other pairs of states with the number of what they are.
template <class Team, class Elements>
struct WordExchange
{
    using Type = typename Team::Type;
    static constexpr int kPairs = Team::hidden / 2, kWords = Team::columns * kPairs; // of a buffer
    static constexpr int kAhead = 8;                                                 // words a thread asks for at once
    unsigned char* shared;
    uint64* memory;
    int *counter, *left;
    uint32 tag = 0; // of what was handed on last; it never comes again
    int count = 0;  // sequences that there are

    WPK_DEVICE WordExchange(unsigned char* to, const Partials& partials) : shared(to)
    {
        const int team = static_cast<int>(blockIdx.y);
        memory = static_cast<uint64*>(partials.tiles) + team * (int64(2) * kWords);
        counter = static_cast<int*>(partials.counters) + 2 * team;
        left = counter + 1;
    }

    // Before the first: words that an earlier launch has left are cleared, each by the block that writes it.
    WPK_DEVICE void begin() const
    {
        if (tag != 0)
            return;
        constexpr int kOwn = Team::units / 2;
        for (int item = static_cast<int>(threadIdx.x); item < 2 * Team::columns * kOwn; item += Team::threads)
        {
            const int pair = static_cast<int>(blockIdx.x) * kOwn + item % kOwn;
            store<uint64, 1>(memory + item / kOwn * kPairs + pair, {{0}});
        }
        __syncthreads(); // @words_cleared
        if (threadIdx.x == 0)
        {
            arriveGrid(counter);
            waitGrid(counter, Team::blocks);
        }
    }
    // Of two buffers in turn: who hands on a state has those before it of all blocks, which then have read the one
    // that lies there.
    WPK_DEVICE void publish(const Elements& elements, int)
    {
        ++tag;
        count = elements.columns;
        uint64* const buffer = memory + tag % 2 * kWords;
        WPK_UNROLL
        for (int number = 0; number < Team::own; ++number)
        {
            if (!elements.isElement(number))
                continue; // a whole warp
            const uint32 own = fromFloat<Type>(elements.h[number]).bits, next = shuffleXor(own, 1);
            const int word = elements.column(number) * kPairs + elements.unit(number) / 2;
            if (laneIndex() % 2 == 0 && elements.isThere(number))
                publishWord(buffer + word, own | next << 16, tag);
        }
    }
    template <class Work>
    WPK_DEVICE void take(int next, Work meanwhile) const
    {
        meanwhile();
        const uint64* const buffer = memory + tag % 2 * kWords;
        const int words = count * kPairs;
        for (int first = static_cast<int>(threadIdx.x); first < words; first += kAhead * Team::threads)
        {
            const uint64* from[kAhead];
            uint32 values[kAhead] = {};
            const int there = minOf(kAhead, ceilDivide(words - first, Team::threads));
            WPK_UNROLL
            for (int i = 0; i < kAhead; ++i)
                from[i] = buffer + minOf(first + i * Team::threads, words - 1);
            awaitWords(from, there, tag, values); // @words_awaited
            WPK_UNROLL
            for (int i = 0; i < kAhead; ++i)
            {
                const int word = first + i * Team::threads, at = word / kPairs * Team::stride + word % kPairs * 2;
                if (i < there)
                    store<uint32, 1>(reinterpret_cast<uint32*>(Team::states(shared, next) + at), {{values[i]}});
            }
        }
        __syncthreads(); // @words_written
    }
    WPK_DEVICE void end() const
    {
        if (threadIdx.x == 0)
            leaveGrid(counter, left, Team::blocks);
    }
};

} // namespace detail

} // namespace wpk
