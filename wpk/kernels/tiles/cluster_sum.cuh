// Split-K in a cluster (sm_90): the blocks that split a tile's reduction are in one cluster. Each puts its partial sums
// into its own shared memory, row by row, and sends every other block its share of the rows (cluster_parts.cuh); each
// adds what all have for its own share, always in the same order, and stores it. split_k.cuh does the same through
// global memory.
#pragma once

#include <wpk/kernels/barriers/cluster.cuh>
#include <wpk/kernels/barriers/named_barrier.cuh>
#include <wpk/kernels/epilogue/epilogue.cuh>
#include <wpk/kernels/sums/cluster_parts.cuh>
#include <wpk/kernels/tiles/tile_store.cuh>

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
template <class Problem, int V>
struct NarrowEpilogueWithMoments : NarrowEpilogue<Problem, V>
{
    using Moments = typename Problem::Moments;
    static constexpr int n = Problem::n;
};
template <class Problem, int V>
using NarrowEpilogueOf =
    Select<kStoresMoments<Problem>, NarrowEpilogueWithMoments<Problem, V>, NarrowEpilogue<Problem, V>>;

} // namespace detail

// A warp's 16 rows of the partial sums, in layout D of mma.cuh, to a matrix of all rows, whose columns lie as those who
// read vectors of V want them.
template <class Shape, int V>
WPK_DEVICE void keepPartialSums(const float (&sums)[Shape::accumulators], float* matrix)
{
    const int lane = laneIndex();
    float* const row = matrix + (warpIndex() * 16 + lane / 4) * Shape::stagingStride;
    float* const at = row + stagedColumn<Shape, V>(lane % 4 * 2);
    WPK_UNROLL
    for (int i = 0; i < Shape::accumulators; i += 4)
    {
        float* const tile = at + stagedColumn<Shape, V>(i * 2);
        store<float, 2>(tile, {sums[i], sums[i + 1]});
        store<float, 2>(tile + 8 * Shape::stagingStride, {sums[i + 2], sums[i + 3]});
    }
}

// V neighbouring values, added over all blocks; `at` floats behind where each block's part begins.
template <class Shape, int Blocks, int V>
WPK_DEVICE void addPartialSums(float (&values)[V], const float* const (&parts)[Blocks], int at)
{
    constexpr int kRead = minOf(V, 4);
    WPK_UNROLL
    for (int e = 0; e < V; e += kRead)
    {
        WPK_UNROLL
        for (int block = 0; block < Blocks; ++block) // in their order
        {
            const auto part = load<float, kRead>(parts[block] + at + stagedColumn<Shape, V>(e));
            WPK_UNROLL
            for (int i = 0; i < kRead; ++i)
                values[e + i] = block == 0 ? part[i] : values[e + i] + part[i];
        }
    }
}

// Adds the partial sums of a tile and stores it; block `rank` of the cluster does so for the `rank`-th share of the
// rows. Shape names what ClusterParts wants, blockN, warpN (as many), consumers (threads that have sums; others have
// none) and accumulators. `shared` is free for the block to use, `parts` has been initialised. All threads of all
// blocks of the cluster call it, behind its first barrier.
template <class Problem, class Shape, class Rows>
WPK_DEVICE void storeSumOfCluster(const float (&sums)[Shape::accumulators], unsigned char* shared,
    const ClusterParts<Shape>& parts, int rank, const OutputWindow<Rows>& window)
{
    using Parts = ClusterParts<Shape>;
    constexpr int kShare = Parts::kShare, kBlocks = Parts::kBlocks;
    constexpr bool isLarge = kShare * Shape::blockN >= 8 * Shape::consumers; // each thread has wide stores to do
    constexpr int V = isLarge ? maxOf(Problem::Y::width, 4) : 4;
    constexpr int kVectors = Shape::blockN / V, kAtOnce = Shape::consumers / kVectors;
    constexpr int kItems = ceilDivide(kShare, kAtOnce);
    // Neighbouring threads take neighbouring vectors of a row, or rows where y's columns are apart.
    constexpr bool kAlongRows = Problem::Y::column != 1;
    const int thread = static_cast<int>(threadIdx.x);
    if (thread < Shape::consumers)
    {
        const int ofShare = kAlongRows ? thread % kAtOnce : thread / kVectors;
        const int column = (kAlongRows ? thread / kAtOnce % kVectors : thread % kVectors) * V;
        const bool adds = thread < kAtOnce * kVectors;
        const auto isStored = [=](int item)
        {
            const int inShare = ofShare + item * kAtOnce, row = rank * kShare + inShare;
            return adds && inShare < kShare && row < Shape::blockM && window.firstRow + row < window.rowEnd;
        };
        const int firstRow = window.firstRow + rank * kShare + ofShare;
        using Columns = EpilogueColumns<detail::NarrowEpilogueOf<Problem, V>, Rows, V>;
        const Columns columns(window, column);
        float* const matrix = reinterpret_cast<float*>(shared);
        keepPartialSums<Shape, V>(sums, matrix);
        parts.send(matrix, rank);
        syncThreads(1, Shape::consumers); // the barrier of the parts says so too, but to no race detector
        // Under way while the parts come; before, the fence would wait for them.
        typename Columns::Fetched fetched[kItems];
        WPK_UNROLL
        for (int item = 0; item < kItems; ++item)
        {
            if constexpr (kStoresMoments<Problem>)
                fetched[item] = {};
            if (isStored(item))
                columns.fetch(firstRow + item * kAtOnce, fetched[item]);
        }
        const float* ofBlocks[kBlocks];
        WPK_UNROLL
        for (int block = 0; block < kBlocks; ++block)
        {
            const float* const sent = reinterpret_cast<const float*>(parts.partOf(block, rank));
            ofBlocks[block] = block == rank ? matrix + rank * kShare * Shape::stagingStride : sent; // @own_part
        }
        parts.wait();
        arriveReadCluster(); // nobody ends while others take its parts
        const int first = ofShare * Shape::stagingStride + stagedColumn<Shape, V>(column);
        float values[kItems][V];
        WPK_UNROLL
        for (int item = 0; item < kItems; ++item)
        {
            if constexpr (kStoresMoments<Problem>)
                memset(values[item], 0, sizeof values[item]);
            if (isStored(item))
                addPartialSums<Shape>(values[item], ofBlocks, first + item * kAtOnce * Shape::stagingStride);
        }
        WPK_UNROLL
        for (int item = 0; item < kItems; ++item)
        {
            if constexpr (kStoresMoments<Problem>)
                columns.storeWithMoments(firstRow + item * kAtOnce, isStored(item), values[item], fetched[item]);
            else if (isStored(item))
                columns.store(firstRow + item * kAtOnce, values[item], fetched[item]);
        }
    }
    else
    {
        arriveReadCluster();
    }
    waitCluster(); // @parts_taken
}

} // namespace wpk
