// The operands of a product of few rows (gemm_skinny.cuh), from memory straight into registers. Nothing of b is read
// twice, so nothing of it passes through shared memory; a is small, and L1 holds it for the threads that share it.
//
// Along: b's neighbours lie along the reduction; neighbouring threads take neighbouring vectors of a column. Across:
// they lie along the columns; neighbouring threads take neighbouring vectors of a row.
#pragma once

#include <wpk/kernels/copies/constant_load.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/numbers/number.cuh>

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
    static constexpr int threadsK = Schedule::threads_k, threadsN = Schedule::threads_n, threads = threadsK * threadsN;
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

// How many of V neighbours from `at` on lie within an extent that is known to the compiler; none where negative.
template <int V, int Extent>
WPK_DEVICE int existing(int at)
{
    if constexpr (Extent % V == 0)
        return at < Extent ? V : 0;
    else
        return minOf(V, Extent - at);
}

// V neighbours in the words that one access brings them in: as elements of two bytes, each would take a register of its
// own, and a step as many instructions again to take words apart.
template <class T, int V>
struct Packed
{
    static constexpr int kBytes = sizeof(T) * V;
    using Word = Select<kBytes % 4 == 0, uint32, Select<kBytes == 2, uint16, uint8>>;
    static constexpr int kWords = kBytes / sizeof(Word);
    Vector<Word, kWords> words = {};

    WPK_DEVICE T operator[](int i) const
    {
        T value;
        if constexpr (sizeof(T) < sizeof(Word))
        {
            using Bits = Select<sizeof(T) == 2, uint16, uint8>;
            constexpr int kEach = sizeof(Word) / sizeof(T);
            const Bits bits = static_cast<Bits>(words[i / kEach] >> i % kEach * (8 * static_cast<int>(sizeof(T))));
            memcpy(&value, &bits, sizeof(value));
        }
        else
        {
            constexpr int kEach = sizeof(T) / sizeof(Word);
            Word parts[kEach];
            WPK_UNROLL
            for (int part = 0; part < kEach; ++part)
                parts[part] = words[i * kEach + part];
            memcpy(&value, parts, sizeof(value));
        }
        return value;
    }

    // All of them.
    WPK_DEVICE void load(const T* from)
    {
        words = wpk::load<Word, kWords>(reinterpret_cast<const Word*>(from));
    }
    WPK_DEVICE void loadConstant(const T* from)
    {
        words = loadConstantOnce<Word, kWords>(reinterpret_cast<const Word*>(from));
    }

    // Those that exist; the others are zeros.
    WPK_DEVICE void loadExisting(const T* from, int valid)
    {
        words = zeroVector<Word, kWords>();
        if (valid >= V)
        {
            load(from);
        }
        else if constexpr (V > 1)
        {
            T elements[V] = {};
            WPK_UNROLL
            for (int e = 0; e < V - 1; ++e)
            {
                if (e < valid)
                    elements[e] = from[e];
            }
            memcpy(&words, elements, sizeof(words));
        }
    }
};

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
    detail::Packed<A, kVector> vectors[Shape::blockM][Shape::runs][kPieces];

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
                    const int valid = Shape::isWhole ? kVector : detail::existing<kVector, Problem::k>(at); // @end_of_a
                    const A* const from = first + m * Problem::a_m + at * Problem::a_k;
                    vectors[m][run][i].loadExisting(from, m < rows ? valid : 0); // @rows_of_a
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
    detail::Packed<B, kVector> vectors[Shape::runs][kVectors];

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
                    const int valid = detail::existing<kVector, Problem::n>(Problem::n - columns);
                    vectors[run][i].loadExisting(first + (depth + i) * Problem::b_k, exists ? valid : 0);
                }
                else
                {
                    const int valid = Shape::isWhole
                                          ? kVector
                                          : detail::existing<kVector, Problem::b_depth>(depth); // @end_of_columns
                    const B* const from = first + i * Problem::b_n + depth * Problem::b_k;
                    fetch(vectors[run][i], from, i < columns ? valid : 0); // @columns_of_b
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
    static WPK_DEVICE void fetch(detail::Packed<B, kVector>& vector, const B* from, int valid)
    {
        if constexpr (Problem::b_constant)
        {
            vector = {};
            if (valid > 0)
                vector.loadConstant(from);
        }
        else
        {
            vector.loadExisting(from, valid);
        }
    }
};

} // namespace wpk
