// Split-K in a cluster (sm_90): the blocks that split a tile's reduction are a cluster. Each puts its partial sums into
// its own shared memory, row by row; each adds those of all blocks for its share of the rows, always in the same order,
// through distributed shared memory, and stores them. split_k.cuh does the same through global memory.
#pragma once

#include <wpk/kernels/cluster.cuh>
#include <wpk/kernels/epilogue.cuh>
#include <wpk/kernels/warp.cuh>

namespace wpk
{

namespace detail
{

// An epilogue whose accesses move at most V columns.
template <class Tensor, int V>
struct Narrow;
template <class T, int Width, int64 Outer, int64 Middle, int64 Inner, int64 Column, int V>
struct Narrow<Strided<T, Width, Outer, Middle, Inner, Column>, V>
{
    using Type = Strided<T, minOf(Width, V), Outer, Middle, Inner, Column>;
};
template <class... Ts, int V>
struct Narrow<Tensors<Ts...>, V>
{
    using Type = Tensors<typename Narrow<Ts, V>::Type...>;
};
template <class Problem, int V>
struct NarrowEpilogue
{
    using Y = typename Narrow<typename Problem::Y, V>::Type;
    using Operands = typename Narrow<typename Problem::Operands, V>::Type;
    using Epilogue = typename Problem::Epilogue;
    static constexpr int y_padding = Problem::y_padding;
};

} // namespace detail

// A warp's 16 rows of the partial sums, in layout D of mma.cuh, to a matrix of all rows.
template <class Shape>
WPK_DEVICE void keepPartialSums(const float (&sums)[Shape::accumulators], float* matrix)
{
    const int lane = laneIndex();
    float* const at = matrix + (warpIndex() * 16 + lane / 4) * Shape::stagingStride + lane % 4 * 2;
    WPK_UNROLL
    for (int i = 0; i < Shape::accumulators; i += 4)
    {
        store<float, 2>(at + i * 2, {sums[i], sums[i + 1]});
        store<float, 2>(at + i * 2 + 8 * Shape::stagingStride, {sums[i + 2], sums[i + 3]});
    }
}

// V neighbouring values at `place`, added over all blocks of the cluster.
template <int Blocks, int V>
WPK_DEVICE void addPartialSums(float (&values)[V], SharedAddress place)
{
    Vector<float, 4> loaded[Blocks][V / 4];
    WPK_UNROLL
    for (int block = 0; block < Blocks; ++block)
    {
        WPK_UNROLL
        for (int i = 0; i < V / 4; ++i)
            loaded[block][i] = loadCluster<float, 4>(clusterAddress(place, block) + i * 16);
    }
    WPK_UNROLL
    for (int block = 0; block < Blocks; ++block)
    {
        WPK_UNROLL
        for (int e = 0; e < V; ++e)
            values[e] = block == 0 ? loaded[0][e / 4][e % 4] : values[e] + loaded[block][e / 4][e % 4];
    }
}

// The rows of a tile that a block stores: all, or its share where a cluster splits the reduction.
template <class Shape>
struct StoredRows
{
    static constexpr int count = ceilDivide(Shape::blockM, Shape::splitCluster);
    static WPK_DEVICE int first(int part)
    {
        return Shape::splitCluster > 1 ? part * count : 0;
    }
};

// Adds the partial sums of a tile and stores it; block `part` of the cluster does so for the `part`-th share of the
// rows. Shape names blockM, blockN, splitCluster (blocks of the cluster), consumers (threads that have sums; others
// have none), accumulators and stagingStride (floats from row to row of `shared`, which is free for the block to use).
// All threads of all blocks of the cluster call it.
template <class Problem, class Shape, class Rows>
WPK_DEVICE void storeSumOfCluster(
    const float (&sums)[Shape::accumulators], unsigned char* shared, int part, const OutputWindow<Rows>& window)
{
    constexpr int kShare = StoredRows<Shape>::count;
    // Wide stores only where they leave something to do for every thread: what comes from other blocks takes longer.
    constexpr bool isLarge = kShare * Shape::blockN >= 8 * Shape::consumers;
    constexpr int V = isLarge ? maxOf(Problem::Y::width, 4) : 4;
    constexpr int kVectors = Shape::blockN / V, kAtOnce = Shape::consumers / kVectors;
    constexpr int kItems = ceilDivide(kShare, kAtOnce);
    // Neighbouring threads take neighbouring vectors of a row, or rows where y's columns are apart.
    constexpr bool kAlongRows = Problem::Y::column != 1;
    float* const matrix = reinterpret_cast<float*>(shared);
    const int thread = static_cast<int>(threadIdx.x);
    const bool holds = thread < Shape::consumers, adds = thread < kAtOnce * kVectors;
    const int ofShare = kAlongRows ? thread % kAtOnce : thread / kVectors;
    const int column = (kAlongRows ? thread / kAtOnce % kVectors : thread % kVectors) * V;
    const auto rowOf = [=](int item) // -1: none
    {
        const int inShare = ofShare + item * kAtOnce, row = part * kShare + inShare;
        return adds && inShare < kShare && row < Shape::blockM && window.firstRow + row < window.rowEnd ? row : -1;
    };
    using Columns = EpilogueColumns<detail::NarrowEpilogue<Problem, V>, Rows, V>;
    const Columns columns(window, column);
    typename Columns::Fetched fetched[kItems]; // under way while the partial sums come
    WPK_UNROLL
    for (int item = 0; item < kItems; ++item)
    {
        if (rowOf(item) >= 0)
            columns.fetch(window.firstRow + rowOf(item), fetched[item]);
    }
    if (holds)
        keepPartialSums<Shape>(sums, matrix);
    syncCluster(); // all partial sums are there
    float values[kItems][V];
    WPK_UNROLL
    for (int item = 0; item < kItems; ++item)
    {
        if (rowOf(item) >= 0)
        {
            float* const at = matrix + rowOf(item) * Shape::stagingStride + column;
            addPartialSums<Shape::splitCluster>(values[item], sharedAddress(at));
        }
    }
    arriveCluster(); // nobody ends while others read
    WPK_UNROLL
    for (int item = 0; item < kItems; ++item)
    {
        if (rowOf(item) >= 0)
            columns.store(window.firstRow + rowOf(item), values[item], fetched[item]);
    }
    waitCluster();
}

} // namespace wpk
