// A block's matrix product on the ordinary cores in fp32 or fp64: tiles in shared memory, a tile of accumulators in
// each thread's registers, fused multiply-adds and nothing else.
//
// D[row][column] += sum over k of A[row][k] * B[column][k]. In shared memory all is of one type, float or double. B
// lies depth-major
// ([k][column]); A depth-major too, or row-major ([row][k]), which the schedule chooses; both with
// `padding` numbers after each line.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/epilogue/epilogue.cuh>
#include <wpk/kernels/numbers/scalar.cuh>
#include <wpk/kernels/sums/warp.cuh>
#include <wpk/kernels/tiles/tile_source.cuh>

namespace wpk
{

// The shape of a block's work. Schedule names block_m, block_n, block_k, thread_m, thread_n, row_major,
// padding, prefetch and early. Number is what is multiplied.
template <class Schedule, class Number>
struct SimtShape
{
    using Value = Number;
    static constexpr int width = 16 / sizeof(Value); // of the widest access
    static constexpr int early = Schedule::early;
    static constexpr int blockM = Schedule::block_m, blockN = Schedule::block_n, blockK = Schedule::block_k;
    static constexpr int threadM = Schedule::thread_m, threadN = Schedule::thread_n;
    static constexpr bool rowMajor = Schedule::row_major != 0, prefetch = Schedule::prefetch != 0;
    static constexpr int threadsM = blockM / threadM, threadsN = blockN / threadN;
    static constexpr int threads = threadsM * threadsN;
    // A warp is lanesM x lanesN threads: nearly square, so that it reads few different values.
    static constexpr int lanesN = minOf(threadsN, 8), lanesM = kWarpSize / lanesN;
    // Neighbouring values of one access; several such runs, a whole block apart, make a thread's tile.
    static constexpr int runM = minOf(threadM, width), runN = minOf(threadN, width);
    static constexpr int strideA = (rowMajor ? blockK : blockM) + Schedule::padding;
    static constexpr int strideB = blockN + Schedule::padding;
    static constexpr int valuesA = strideA * (rowMajor ? blockM : blockK);
    static constexpr int valuesB = strideB * blockK;
    static constexpr int stages = prefetch ? 2 : 1;
    static constexpr int stageBytes = (valuesA + valuesB) * static_cast<int>(sizeof(Value));
    static constexpr int sharedBytes = stages * stageBytes;
};

// The thread's place in the block.
template <class Shape>
struct SimtThread
{
    int m, n;
    WPK_DEVICE SimtThread()
    {
        constexpr int warpsN = Shape::threadsN / Shape::lanesN;
        m = warpIndex() / warpsN * Shape::lanesM + laneIndex() / Shape::lanesN;
        n = warpIndex() % warpsN * Shape::lanesN + laneIndex() % Shape::lanesN;
    }
    // Row and column, within the block, of the thread's i-th row and j-th column.
    WPK_DEVICE int row(int i) const
    {
        if constexpr (Shape::rowMajor)
            return m + i * Shape::threadsM;
        return (i / Shape::runM * Shape::threadsM + m) * Shape::runM + i % Shape::runM;
    }
    WPK_DEVICE int column(int j) const
    {
        return (j / Shape::runN * Shape::threadsN + n) * Shape::runN + j % Shape::runN;
    }
};

// Puts gathered groups into a tile: row-major as they are, depth-major across.
template <class Value, int Stride, bool RowMajor, int Group>
struct SimtSink
{
    static constexpr int kGroup = Group;
    template <class From>
    static WPK_DEVICE void put(unsigned char* stage, int row, int column, const From (&values)[Group])
    {
        Value* const tile = reinterpret_cast<Value*>(stage);
        if constexpr (RowMajor)
        {
            Vector<Value, Group> vector;
            WPK_UNROLL
            for (int e = 0; e < Group; ++e)
                vector[e] = toNumber<Value>(values[e]);
            store<Value, Group>(tile + row * Stride + column, vector);
        }
        else
        {
            WPK_UNROLL
            for (int e = 0; e < Group; ++e)
                tile[(column + e) * Stride + row] = toNumber<Value>(values[e]);
        }
    }
};

// Reads Count values in runs of Run, the runs Apart values from each other.
template <int Count, int Run, int Apart, class Value>
WPK_DEVICE void loadRuns(const Value* from, Value (&values)[Count])
{
    WPK_UNROLL
    for (int i = 0; i < Count; i += Run)
    {
        const auto run = load<Value, Run>(from + i / Run * Apart);
        WPK_UNROLL
        for (int e = 0; e < Run; ++e)
            values[i + e] = run[e];
    }
}

// acc += A * B over kVector positions of the reduction; the tiles begin at the first of them.
template <class Shape, int Count, class Value>
WPK_DEVICE void multiplyPositions(Value (&acc)[Shape::threadM][Shape::threadN], const SimtThread<Shape>& thread,
    const Value* tileA, const Value* tileB)
{
    Value a[Count][Shape::threadM];
    if constexpr (Shape::rowMajor)
    {
        WPK_UNROLL
        for (int i = 0; i < Shape::threadM; ++i)
        {
            const auto vector = load<Value, Count>(tileA + thread.row(i) * Shape::strideA);
            WPK_UNROLL
            for (int e = 0; e < Count; ++e)
                a[e][i] = vector[e];
        }
    }
    else
    {
        WPK_UNROLL
        for (int e = 0; e < Count; ++e)
        {
            loadRuns<Shape::threadM, Shape::runM, Shape::threadsM * Shape::runM>(
                tileA + e * Shape::strideA + thread.m * Shape::runM, a[e]);
        }
    }
    WPK_UNROLL
    for (int e = 0; e < Count; ++e)
    {
        Value b[Shape::threadN];
        loadRuns<Shape::threadN, Shape::runN, Shape::threadsN * Shape::runN>(tileB + e * Shape::strideB, b);
        WPK_UNROLL
        for (int i = 0; i < Shape::threadM; ++i)
        {
            WPK_UNROLL
            for (int j = 0; j < Shape::threadN; ++j)
                acc[i][j] = multiplyAdd(a[e][i], b[j], acc[i][j]); // @multiplied
        }
    }
}

// The type of the sums of products of elements that lie in memory as A and B: those of bytes are exact.
template <class A, class B, class Number>
using SimtSum = Select<sizeof(A) == 1 && sizeof(B) == 1, int32, Number>;

// acc += A * B over the tiles at `stage`.
template <class Shape>
WPK_DEVICE void multiplyTile(typename Shape::Value (&acc)[Shape::threadM][Shape::threadN],
    const SimtThread<Shape>& thread, const unsigned char* stage)
{
    using Value = typename Shape::Value;
    const Value* const tileA = reinterpret_cast<const Value*>(stage);
    const Value* const tileB = tileA + Shape::valuesA + thread.n * Shape::runN;
    constexpr int kCount = Shape::rowMajor ? Shape::width : 1; // positions of the reduction that one load of A gives
    constexpr int kUnrolled = 8;                               // enough to hide a load, and quick to compile
    for (int base = 0; base < Shape::blockK; base += kUnrolled)
    {
        WPK_UNROLL
        for (int i = 0; i < minOf(kUnrolled, Shape::blockK); i += kCount)
        {
            const int k = base + i;
            multiplyPositions<Shape, kCount>(
                acc, thread, tileA + k * (Shape::rowMajor ? 1 : Shape::strideA), tileB + k * Shape::strideB);
        }
    }
}

// The same of products of bytes: those of one tile are integers that fp32 holds.
template <class Shape>
WPK_DEVICE void multiplyTile(
    int32 (&acc)[Shape::threadM][Shape::threadN], const SimtThread<Shape>& thread, const unsigned char* stage)
{
    static_assert(Shape::blockK * 255 * 255 < 1 << 24, "fp32 holds the sums of a tile");
    float sums[Shape::threadM][Shape::threadN] = {};
    multiplyTile<Shape>(sums, thread, stage);
    WPK_UNROLL
    for (int i = 0; i < Shape::threadM; ++i)
    {
        WPK_UNROLL
        for (int j = 0; j < Shape::threadN; ++j)
            acc[i][j] += static_cast<int32>(sums[i][j]);
    }
}

// Multiplies all `steps` (at least one) tiles. With prefetch the next tile is on its way during the
// computation, in registers, and goes to the other of two stages. Launched early, the kernel asks for the first tile
// of a constant B before the kernels in front have ended, and lets the next one begin when all tiles have come.
template <class Shape, bool ConstantB, class Sum, class LoaderA, class LoaderB>
WPK_DEVICE void multiplySimtTiles(Sum (&acc)[Shape::threadM][Shape::threadN], const SimtThread<Shape>& thread,
    unsigned char* shared, LoaderA& loaderA, LoaderB& loaderB, int steps)
{
    const auto fetch = [&]
    {
        loaderB.begin(shared);
        loaderA.begin(shared);
    };
    const auto deliver = [&](unsigned char* stage)
    {
        loaderA.finish(stage);
        loaderB.finish(stage + Shape::valuesA * sizeof(typename Shape::Value));
    };
    if constexpr (ConstantB)
        loaderB.begin(shared);
    waitIfEarly<Shape>(); // @previous_awaited
    if constexpr (!ConstantB)
        loaderB.begin(shared);
    loaderA.begin(shared); // @first_tile_begun
    deliver(shared);
    __syncthreads();
    for (int step = 0; step < steps; ++step)
    {
        const bool more = step + 1 < steps;
        if (!more)
            releaseIfEarly<Shape>();
        if constexpr (Shape::prefetch)
        {
            if (more)
                fetch();
            multiplyTile<Shape>(acc, thread, shared + step % 2 * Shape::stageBytes);
            if (more)
                deliver(shared + (step + 1) % 2 * Shape::stageBytes);
        }
        else
        {
            multiplyTile<Shape>(acc, thread, shared);
            __syncthreads(); // everyone has read the tile that is overwritten now
            if (more)
            {
                fetch();
                deliver(shared);
            }
        }
        __syncthreads();
    }
}

// Writes the thread's accumulators to its part of the block's window.
template <class Problem, class Shape, class Sum, class Rows>
WPK_DEVICE void storeSimtTile(
    const Sum (&acc)[Shape::threadM][Shape::threadN], const SimtThread<Shape>& thread, const OutputWindow<Rows>& window)
{
    constexpr int V = Shape::runN;
    using Columns = EpilogueColumns<Problem, Rows, V>;
    WPK_UNROLL
    for (int j = 0; j < Shape::threadN; j += V)
    {
        const Columns columns(window, thread.column(j));
        typename Columns::Fetched fetched[Shape::threadM];
        WPK_UNROLL
        for (int i = 0; i < Shape::threadM; ++i)
        {
            if (window.firstRow + thread.row(i) < window.rowEnd)
                columns.fetch(window.firstRow + thread.row(i), fetched[i]);
        }
        WPK_UNROLL
        for (int i = 0; i < Shape::threadM; ++i)
        {
            const int row = window.firstRow + thread.row(i);
            typename Shape::Value values[V];
            WPK_UNROLL
            for (int e = 0; e < V; ++e)
                values[e] = toNumber<typename Shape::Value>(acc[i][j + e]);
            if (row < window.rowEnd)
                columns.store(row, values, fetched[i]);
        }
    }
}

} // namespace wpk
