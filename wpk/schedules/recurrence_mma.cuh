// Recurrences whose weights stay on the chip: blocks share the units, each keeps its rows of R in registers for all
// steps, and they hand each other the states that they computed.
//
// A team of blocks has `sequences` sequences and all units: a block has `units` of them. Its warps split the sum over
// the states: each multiplies by tensor cores its part of the block's rows (A: all gates of 16 units to a tile each)
// with that part of the states (B: sequences are columns), and adds the parts of all warps in shared memory. Then each
// thread has a few units of a few sequences, whose c and unrounded h it keeps.
//
// Which k a place of a fragment has is free as long as A and B agree: a lane takes eight neighbours of a row, 16
// bytes, as its part of two products.
//
// States travel rounded to R's type, one of two buffers for every second step:
//   exchange 0: the team is a cluster, and each block writes its states into the shared memory of all.
//   exchange 1: the launch is cooperative; states go through global memory (L2), and blocks count their arrivals.
//   exchange 2: likewise, but each pair of states carries the number of its step, and readers wait for that.
//
// Problem: as in recurrent_cell.cuh; R over (row, column), Y over (sequence, step, column); steps, slots, isReverse,
// inputs.
#pragma once

#include <wpk/kernels/async_copy.cuh>
#include <wpk/kernels/cluster.cuh>
#include <wpk/kernels/grid_barrier.cuh>
#include <wpk/kernels/mma.cuh>
#include <wpk/kernels/recurrent_cell.cuh>
#include <wpk/kernels/split_k.cuh>
#include <wpk/kernels/warp.cuh>

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

// What a thread keeps of its units: an element is a unit of a sequence.
template <class Team, class Problem>
struct RecurrentElements
{
    using Unit = RecurrentUnit<Problem>;
    using Type = typename Team::Type;
    const void* const* inputs;
    int firstUnit, firstColumn, columns; // of the team's sequences there are `columns`
    float h[Team::own], c[Team::own], x[Team::own][Team::gates];
    int lengths[Team::own];
    Unit numbers[Team::own];

    static WPK_DEVICE int element(int number)
    {
        return static_cast<int>(threadIdx.x) + number * Team::threads;
    }
    static WPK_DEVICE bool isElement(int number)
    {
        return Team::elements % Team::threads == 0 || element(number) < Team::elements;
    }
    static WPK_DEVICE int column(int number)
    {
        return element(number) / Team::kUnits % Team::columns;
    }
    static WPK_DEVICE int tileRow(int number)
    {
        return element(number) / (Team::kUnits * Team::columns); // which 16 of the block's units
    }
    WPK_DEVICE int unit(int number) const
    {
        return firstUnit + tileRow(number) * Team::kUnits + element(number) % Team::kUnits;
    }
    WPK_DEVICE bool isThere(int number) const
    {
        return isElement(number) && column(number) < columns;
    }

    WPK_DEVICE void begin()
    {
        WPK_UNROLL
        for (int number = 0; number < Team::own; ++number)
        {
            h[number] = c[number] = 0.0f;
            lengths[number] = 0;
            if (!isThere(number))
                continue;
            const int sequence = firstColumn + column(number);
            h[number] = firstState<typename Problem::H0, Problem::h0At>(inputs, sequence, unit(number));
            if constexpr (Problem::cell == Cell::lstm)
                c[number] = firstState<typename Problem::C0, Problem::c0At>(inputs, sequence, unit(number));
            lengths[number] = stepsOf<Problem>(inputs, sequence);
            numbers[number].load(inputs, unit(number));
        }
    }

    // The gates' inputs at a step: early, for they come from far.
    WPK_DEVICE void prepare(int step)
    {
        WPK_UNROLL
        for (int number = 0; number < Team::own; ++number)
        {
            if (isThere(number))
                Unit::loadInputs(inputs, firstColumn + column(number), step, unit(number), x[number]);
        }
    }

    // The sum of all warps' parts; in the order of the warps.
    static WPK_DEVICE float total(const float* sums, int tile, int number)
    {
        float sum = 0.0f;
        WPK_UNROLL
        for (int warp = 0; warp < Team::warps; ++warp)
        {
            const int at = ((warp * Team::tiles + tile) * Team::columns + column(number)) * Team::sumStride;
            sum += wpk::load<float, 1>(sums + at + element(number) % Team::kUnits)[0];
        }
        return sum;
    }

    WPK_DEVICE void step(const float* sums, int step)
    {
        WPK_UNROLL
        for (int number = 0; number < Team::own; ++number)
        {
            if (!isThere(number) || step >= lengths[number])
                continue;
            float all[Team::gates];
            WPK_UNROLL
            for (int gate = 0; gate < Team::gates; ++gate)
                all[gate] = total(sums, tileRow(number) * Team::gates + gate, number);
            h[number] = numbers[number].next(x[number], all, h[number], c[number]);
        }
    }

    // Writes y, behind what other blocks wait for.
    WPK_DEVICE void put(void* y, int step) const
    {
        WPK_UNROLL
        for (int number = 0; number < Team::own; ++number)
        {
            if (isThere(number))
            {
                const float value = step < lengths[number] ? h[number] : 0.0f;
                storeState<Problem>(y, firstColumn + column(number), step, unit(number), value);
            }
        }
    }

    WPK_DEVICE void end(void* y) const
    {
        WPK_UNROLL
        for (int number = 0; number < Team::own; ++number)
        {
            if (Problem::slots < 2 || !isThere(number))
                continue;
            const bool any = lengths[number] > 0; // else zeros, as ONNX Runtime has it
            const int sequence = firstColumn + column(number);
            storeState<Problem>(y, sequence, Problem::steps, unit(number), any ? h[number] : 0.0f);
            if constexpr (Problem::slots > 2)
                storeState<Problem>(y, sequence, Problem::steps + 1, unit(number), any ? c[number] : 0.0f);
        }
    }
};

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

// The first states of all units, which every block reads itself; zeros where a sequence is missing.
template <class Team, class Problem>
WPK_DEVICE void loadFirstStates(const void* const* inputs, typename Team::Type* states, int first, int count)
{
    using Type = typename Team::Type;
    for (int item = static_cast<int>(threadIdx.x); item < Team::columns * Team::hidden; item += Team::threads)
    {
        const int column = item / Team::hidden, unit = item % Team::hidden;
        float value = 0.0f;
        if (column < count)
            value = firstState<typename Problem::H0, Problem::h0At>(inputs, first + column, unit);
        store<Type, 1>(states + column * Team::stride + unit, {{fromFloat<Type>(value)}});
    }
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void recurrenceMma(Inputs<Problem::inputs> inputs, int n, void* y, const Partials& partials = {})
{
    using Team = detail::RecurrentTeam<Problem, Schedule>;
    using Elements = detail::RecurrentElements<Team, Problem>;
    using ThroughMemory =
        Select<Schedule::exchange == 1, detail::GridExchange<Team, Elements>, detail::WordExchange<Team, Elements>>;
    using Exchange = Select<Team::isCluster, detail::ClusterExchange<Team, Elements>, ThroughMemory>;
    WPK_SHARED(unsigned char, shared);
    const int firstUnit = static_cast<int>(blockIdx.x) * Team::units;
    detail::RecurrentWeights<Team, Problem> weights;
    weights.load(inputs.at[1], firstUnit);
    Exchange exchange(shared, partials);
    const int teams = static_cast<int>(gridDim.y);
    for (int first = static_cast<int>(blockIdx.y) * Team::columns; first < n; first += teams * Team::columns)
    {
        Elements elements{inputs.at, firstUnit, first, minOf(Team::columns, n - first)};
        elements.begin();
        detail::loadFirstStates<Team, Problem>(inputs.at, Team::states(shared, 0), first, elements.columns);
        exchange.begin();
        elements.prepare(Problem::isReverse ? Problem::steps - 1 : 0);
        __syncthreads(); // @first_states_written
        for (int number = 0; number < Problem::steps; ++number)
        {
            const int step = Problem::isReverse ? Problem::steps - 1 - number : number;
            const int next = (number + 1) % 2;
            weights.multiply(Team::states(shared, number % 2), Team::sums(shared));
            __syncthreads(); // @sums_written
            elements.step(Team::sums(shared), step);
            if (number == Problem::steps - 1)
            {
                elements.put(y, step);
                break;
            }
            exchange.publish(elements, next);
            elements.prepare(Problem::isReverse ? step - 1 : step + 1);
            exchange.take(next, [&] { elements.put(y, step); });
        }
        elements.end(y);
        __syncthreads(); // @sequences_done: what follows begins with their memory
    }
    exchange.end();
}

} // namespace wpk
