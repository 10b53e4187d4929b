// Attention on the tensor cores: softmax(s(Q K^T)) V in one kernel, without the scores in memory.
//
// A block has 16 `warps` rows of queries of one matrix. Its `warps` x `split` warps walk the keys in steps of
// `split` x `block_n`: a warp multiplies its 16 rows with its block_n keys, then the exponentials of its scores with
// their values (tile_attention.cuh). The warps that share rows meet in shared memory at the end.
//
// Problem: Multiply (Half, Bfloat16, Tf32 or SplitFp32), Element, as it lies; Q, K, V, Operands and Y over (matrix,
// head, row, column), Scores an expression over the product and Operands; heads, queries, keys, depth, width, yPadding;
// wide.
#pragma once

#include <wpk/kernels/attention_staging.cuh>
#include <wpk/kernels/early_launch.cuh>
#include <wpk/kernels/index.cuh>
#include <wpk/kernels/tensor.cuh>
#include <wpk/kernels/tile_attention.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void attentionMma(Inputs<3 + Problem::Operands::count> inputs, int n, void* y)
{
    using Shape = AttentionShape<Problem, Schedule>;
    using T = typename Shape::T;
    using Place = Domain<Problem::wide, Problem::heads, ceilDivide(Problem::queries, Shape::rows)>;
    WPK_SHARED(unsigned char, shared);
    const Place at(static_cast<int64>(blockIdx.x));
    const int matrix = at.leading, head = at.at[0], firstRow = at.at[1] * Shape::rows;
    const T* const q = static_cast<const T*>(inputs.at[0]) + Problem::Q::offset(matrix, head, 0, 0);
    const T* const k = static_cast<const T*>(inputs.at[1]) + Problem::K::offset(matrix, head, 0, 0);
    const T* const v = static_cast<const T*>(inputs.at[2]) + Problem::V::offset(matrix, head, 0, 0);
    unsigned char* const ring = shared + Shape::Queries::bytes;

    const auto begin = [&](int step)
    {
        unsigned char* const slot = ring + step % Shape::stages * Shape::stageBytes;
        const int firstKey = step * Shape::keys;
        if (step < Shape::steps)
            Shape::Keys::template copy<Shape::threads>(sharedAddress(slot), k, Problem::k_row, firstKey, Problem::keys);
        commitCopies();
        if (step < Shape::steps)
            Shape::Values::template copy<Shape::threads>(
                sharedAddress(slot + Shape::Keys::bytes), v, Problem::v_row, firstKey, Problem::keys);
        commitCopies();
        if (Schedule::early && step == Shape::steps - 1)
            releaseNext(); // all is asked for
    };
    if (Schedule::early)
        waitForPrevious();
    Shape::Queries::template copy<Shape::threads>(sharedAddress(shared), q, Problem::q_row, firstRow, Problem::queries);
    WPK_KEEP_LOOP
    for (int step = 0; step < Shape::stages; ++step)
        begin(step);

    AttentionWarp<Problem, Shape> warp;
    for (int step = 0; step < Shape::steps; ++step)
    {
        const unsigned char* const slot = ring + step % Shape::stages * Shape::stageBytes;
        const int firstKey = step * Shape::keys;
        float factor[2];
        warp.loadOperands(inputs.at + 3, matrix, head, firstRow, firstKey);
        waitCopies<2 * Shape::stages - 1>();
        __syncthreads();
        warp.multiplyKeys(sharedAddress(shared), sharedAddress(slot));
        warp.weigh(firstKey, factor);
        waitCopies<2 * Shape::stages - 2>();
        __syncthreads();
        warp.multiplyValues(slot + Shape::Keys::bytes, factor);
        __syncthreads(); // the slot is free, at last for the staging
        begin(step + Shape::stages);
    }

    constexpr int V = 4;
    const AttentionStaging<Shape> staging{reinterpret_cast<float*>(shared)};
    staging.put(warp);
    __syncthreads();
    constexpr int kVectors = ceilDivide(Problem::width + Problem::yPadding, V);
    for (int item = static_cast<int>(threadIdx.x); item < Shape::rows * kVectors; item += Shape::threads)
    {
        const int row = item / kVectors, column = item % kVectors * V;
        if (firstRow + row >= Problem::queries)
            break;
        float values[V] = {};
        if (column < Problem::width)
            staging.template get<V, Problem::emptyRowsAreZero>(row, column, values);
        storeRowFromFloat<typename Problem::Y, V>(y, Problem::Y::offset(matrix, head, firstRow + row, column),
            Problem::width - column, minOf(V, Problem::width + Problem::yPadding - column), values);
    }
}

} // namespace wpk
