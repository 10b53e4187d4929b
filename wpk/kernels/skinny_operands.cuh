// The operands of a product of few rows (gemm_skinny.cuh), from memory straight into registers. Nothing of b is read
// twice, so nothing of it passes through shared memory; a is small, and L1 holds it for the threads that share it.
//
// Along: b's neighbours lie along the reduction; neighbouring threads take neighbouring vectors of a column. Across:
// they lie along the columns; neighbouring threads take neighbouring vectors of a row.
#pragma once

#include <wpk/kernels/constant_load.cuh>
#include <wpk/kernels/number.cuh>
#include <wpk/kernels/vector.cuh>

namespace wpk
{

// How a block divides its tile. In a step a thread takes kRuns runs of the reduction, each of kRun neighbours, of
// `rows` rows and `columns` columns.
template <class Problem, class Schedule>
struct SkinnyShape
{
    using P = Problem;
    static constexpr int early = Schedule::early;
    static constexpr bool across = P::b_across, prefetch = Schedule::prefetch != 0;
    static constexpr int threads = Schedule::threads, threadsK = Schedule::threads_k, threadsN = threads / threadsK;
    static constexpr int blockM = Schedule::block_m, columns = Schedule::thread_n, blockN = threadsN * columns;
    static constexpr int vector = P::b_vector;
    static constexpr int run = across ? Schedule::depth : vector;
    static constexpr int runs = across ? 1 : Schedule::depth;
    static constexpr int elements = runs * run; // of the reduction, a thread's of a step
    static constexpr int step = threadsK * elements;
    static constexpr int steps = ceilDivide(P::k, step);
    static constexpr bool isWhole = P::k % step == 0; // then no step reaches beyond the end
    static_assert(!across || columns == vector, "a thread that reads across has one vector of columns");
};

namespace detail
{

// V neighbours, of which `valid` exist; the others are zeros.
template <int V, class T>
WPK_DEVICE Vector<T, V> loadExisting(const T* from, int valid)
{
    Vector<T, V> vector = zeroVector<T, V>();
    if (valid >= V)
    {
        vector = load<T, V>(from);
    }
    else if constexpr (V > 1)
    {
        WPK_UNROLL
        for (int e = 0; e < V - 1; ++e)
        {
            if (e < valid)
                vector[e] = from[e];
        }
    }
    return vector;
}

} // namespace detail

// A thread's place: its part of every step, and its first column in the block's tile.
template <class Shape>
struct SkinnyThread
{
    int k, group;

    WPK_DEVICE SkinnyThread()
    {
        const int thread = static_cast<int>(threadIdx.x);
        k = Shape::across ? thread / Shape::threadsN : thread % Shape::threadsK;
        group = Shape::across ? thread % Shape::threadsN : thread / Shape::threadsK;
    }
    WPK_DEVICE int column() const
    {
        return group * Shape::columns;
    }
    // Where the thread's run number `run` of a step begins.
    WPK_DEVICE int depth(int step, int run) const
    {
        return step * Shape::step + (run * Shape::threadsK + k) * Shape::run;
    }
};

// What a thread multiplies in a step of a: `rows` rows of elements of the reduction.
template <class Problem, class Shape>
struct SkinnyA
{
    using A = typename Problem::A;
    static constexpr int kVector = minOf(Problem::a_vector, Shape::run), kPieces = Shape::run / kVector;
    static_assert(Shape::run % kVector == 0, "runs are whole vectors");
    Vector<A, kVector> vectors[Shape::blockM][Shape::runs][kPieces];

    // Of the rows from `first` on, `rows` of which exist.
    WPK_DEVICE void load(const A* first, int rows, const SkinnyThread<Shape>& thread, int step)
    {
        WPK_UNROLL
        for (int m = 0; m < Shape::blockM; ++m)
        {
            WPK_UNROLL
            for (int run = 0; run < Shape::runs; ++run)
            {
                const int depth = thread.depth(step, run);
                WPK_UNROLL
                for (int i = 0; i < kPieces; ++i)
                {
                    const int at = depth + i * kVector;
                    const int left = Shape::isWhole ? kVector : Problem::k - at; // @end_of_a
                    const int valid = Problem::k % kVector == 0 && left > 0 ? kVector : left;
                    vectors[m][run][i] = detail::loadExisting<kVector>(
                        first + m * Problem::a_m + at * Problem::a_k, m < rows ? valid : 0); // @rows_of_a
                }
            }
        }
    }

    template <class Number>
    WPK_DEVICE Number number(int m, int element) const
    {
        const int inRun = element % Shape::run;
        return toNumber<Number>(vectors[m][element / Shape::run][inRun / kVector][inRun % kVector]);
    }
};

// The same of b: of `columns` columns.
template <class Problem, class Shape>
struct SkinnyB
{
    using B = typename Problem::B;
    static constexpr int kVector = Shape::vector;
    static constexpr int kVectors = Shape::across ? Shape::run : Shape::columns;
    Vector<B, kVector> vectors[Shape::runs][kVectors];

    // Of the columns from `first` on, `columns` of which exist.
    WPK_DEVICE void load(const B* first, int columns, const SkinnyThread<Shape>& thread, int step)
    {
        WPK_UNROLL
        for (int run = 0; run < Shape::runs; ++run)
        {
            const int depth = thread.depth(step, run);
            WPK_UNROLL
            for (int i = 0; i < kVectors; ++i)
            {
                if constexpr (Shape::across)
                {
                    const bool exists = Shape::isWhole || depth + i < Problem::b_depth; // @end_of_rows
                    const int valid = Problem::n % kVector == 0 && columns > 0 ? kVector : columns;
                    vectors[run][i] =
                        detail::loadExisting<kVector>(first + (depth + i) * Problem::b_k, exists ? valid : 0);
                }
                else
                {
                    const int left = Shape::isWhole ? kVector : Problem::b_depth - depth; // @end_of_columns
                    const int valid = Problem::b_depth % kVector == 0 && left > 0 ? kVector : left;
                    vectors[run][i] = fetch(first + i * Problem::b_n + depth * Problem::b_k, i < columns ? valid : 0);
                }
            }
        }
    }

    // Column `c` at an element of the reduction.
    template <class Number>
    WPK_DEVICE Number number(int c, int element) const
    {
        if constexpr (Shape::across)
        {
            return toNumber<Number>(vectors[0][element][c]);
        }
        else
        {
            return toNumber<Number>(vectors[element / Shape::run][c][element % Shape::run]);
        }
    }

private:
    // Of a constant b, whose columns are whole vectors: once, by L1.
    static WPK_DEVICE Vector<B, kVector> fetch(const B* from, int valid)
    {
        if constexpr (Problem::b_constant)
        {
            Vector<B, kVector> vector = zeroVector<B, kVector>();
            if (valid > 0)
                vector = loadConstantOnce<B, kVector>(from);
            return vector;
        }
        else
        {
            return detail::loadExisting<kVector>(from, valid);
        }
    }
};

} // namespace wpk
