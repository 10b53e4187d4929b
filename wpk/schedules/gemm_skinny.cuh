// Product of few rows with a matrix ("skinny GEMM"; of one row, GEMV), which takes as long as that matrix takes to
// come: tensors of any floating type, products and sums in the numbers of the epilogue. Sums of products of bytes are
// exact.
//
// The grid is MatrixBlock's. Problem and Schedule are named by gemm_skinny.py. Every thread keeps sums of its part of
// the reduction, for all rows and some columns; lanes add theirs, then warps, then blocks (split_k.cuh).
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/epilogue/matrix_block.cuh>
#include <wpk/kernels/simt/skinny_operands.cuh>
#include <wpk/kernels/simt/skinny_sums.cuh>
#include <wpk/kernels/sums/split_k.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void gemmSkinny(
    Inputs<2 + Problem::Operands::count> inputs, int leading, void* y, const Partials& partials = {})
{
    using Shape = SkinnyShape<Problem, Schedule>;
    using Number = NumberOf<typename Problem::Epilogue>;
    using Sum = SkinnySum<typename Problem::A, typename Problem::B, Number>;
    using A = SkinnyA<Problem, Shape>;
    using B = SkinnyB<Problem, Shape>;
    using Sums = SkinnySums<Shape, Sum>;
    WPK_SHARED(unsigned char, shared);
    static_assert(Schedule::shared_bytes == Sums::kSharedBytes, "Python and C++ count the same shared memory");

    const MatrixBlock<Problem, Shape> block(inputs, leading);
    const SplitRange<Schedule::split, Shape::steps> range;
    const SkinnyThread<Shape> thread;
    const int firstColumn = block.firstColumn + thread.column(), columns = Problem::n - firstColumn;
    const auto* const fromA = block.a + block.firstRow * Problem::a_m;
    const auto* const fromB = block.b + (columns > 0 ? firstColumn * Problem::b_n : 0);

    constexpr bool kAhead = Problem::b_constant; // @constant_b: nothing writes it, so nothing is to be waited for
    A a;
    B b;
    if constexpr (kAhead)
        b.load(fromB, columns, thread, range.first);
    const auto window = block.window(inputs.at + 2, y);
    prefetchTileConstants<Problem, Shape::blockM, Shape::blockN, Shape::threads>(window);
    waitIfEarly<Shape>();                                         // @previous_awaited
    a.load(fromA, block.m - block.firstRow, thread, range.first); // @rows_begun
    if constexpr (!kAhead)
        b.load(fromB, columns, thread, range.first);
    const SkinnyOutputs<Problem, Shape> outputs(window);

    Sums sums;
    WPK_KEEP_LOOP
    for (int step = 0; step < range.count; ++step)
    {
        const bool more = step + 1 < range.count;
        const int next = range.first + step + 1;
        if (!more)
            releaseIfEarly<Shape>();
        if constexpr (Shape::prefetch)
        {
            const A nowA = a;
            const B nowB = b;
            if (more)
            {
                b.load(fromB, columns, thread, next);
                a.load(fromA, block.m - block.firstRow, thread, next);
            }
            sums.multiply(nowA, nowB);
        }
        else
        {
            sums.multiply(a, b);
            if (more)
            {
                b.load(fromB, columns, thread, next);
                a.load(fromA, block.m - block.firstRow, thread, next);
            }
        }
    }
    Sum results[Sums::kOutputs];
    sums.addThreads(results, thread, shared);
    if (range.template sum<Shape::threads>(results, shared, partials))
        outputs.store(results);
}

} // namespace wpk
