// The sums of a product of few rows (gemm_skinny.cuh): kept by threads that share the reduction, added within warps and
// through shared memory, stored an element a thread.
#pragma once

#include <wpk/kernels/epilogue/epilogue.cuh>
#include <wpk/kernels/simt/skinny_operands.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

// The type of the sums of products of elements that lie in memory as A and B: those of bytes are exact.
template <class A, class B, class Number>
using SkinnySum = Select<isInteger<A> && isInteger<B>, int32, Number>;

namespace detail
{

// A value of another lane, of any of the types of sums.
template <class T>
WPK_DEVICE T exchanged(T value, int distance)
{
    if constexpr (isSame<T, int32>)
        return static_cast<int32>(shuffleXor(static_cast<uint32>(value), distance));
    else
        return shuffleXor(value, distance);
}

// Adds Count values of each of Lanes lanes: at every distance a lane gives half of its values away, while it has more
// than one. Where a lane's first value was, is returned. Count is a power of two.
template <int Count, int Distance, int Held, class T>
WPK_DEVICE int addLanes(T (&values)[Held])
{
    if constexpr (Distance == 0)
    {
        return 0;
    }
    else if constexpr (Count > 1)
    {
        const bool upper = (laneIndex() & Distance) != 0;
        WPK_UNROLL
        for (int i = 0; i < Count / 2; ++i)
        {
            const T given = upper ? values[i] : values[i + Count / 2];
            const T kept = upper ? values[i + Count / 2] : values[i];
            values[i] = kept + exchanged(given, Distance); // @lanes_added
        }
        return (upper ? Count / 2 : 0) + addLanes<Count / 2, Distance / 2>(values);
    }
    else
    {
        values[0] += exchanged(values[0], Distance);
        return addLanes<1, Distance / 2>(values);
    }
}

} // namespace detail

// Shape says how threads share the tile.
template <class Shape, class Sum>
class SkinnySums
{
    static constexpr int kTile = Shape::blockM * Shape::blockN, kCount = Shape::blockM * Shape::columns;
    // Lanes whose sums are of the same columns, side by side where b lies along the reduction.
    static constexpr int kLanes = Shape::across ? 1 : minOf(Shape::threadsK, kWarpSize);
    static constexpr int kHeld = maxOf(1, kCount / kLanes); // values of a lane when lanes have added theirs
    static constexpr int kSlices = Shape::threadsK / kLanes;

public:
    static constexpr int kOutputs = ceilDivide(kTile, Shape::threads); // of a thread
    static constexpr int kSharedBytes = kSlices * kTile * static_cast<int>(sizeof(Sum));

    template <class A, class B>
    WPK_DEVICE void multiply(const A& a, const B& b)
    {
        WPK_UNROLL
        for (int element = 0; element < Shape::elements; ++element)
        {
            Sum row[Shape::blockM];
            WPK_UNROLL
            for (int m = 0; m < Shape::blockM; ++m)
                row[m] = a.template number<Sum>(m, element);
            WPK_UNROLL
            for (int c = 0; c < Shape::columns; ++c)
            {
                const Sum column = b.template number<Sum>(c, element);
                WPK_UNROLL
                for (int m = 0; m < Shape::blockM; ++m)
                {
                    Sum& sum = sums_[m * Shape::columns + c];
                    if constexpr (isSame<Sum, int32>)
                        sum += row[m] * column;
                    else
                        sum = multiplyAdd(row[m], column, sum);
                }
            }
        }
    }

    // Adds the sums of all threads of the block: a thread gets those of the elements that SkinnyOutputs gives it.
    WPK_DEVICE void addThreads(Sum (&results)[kOutputs], const SkinnyThread<Shape>& thread, unsigned char* shared)
    {
        Sum* const tiles = reinterpret_cast<Sum*>(shared);
        const int first = detail::addLanes<kCount, kLanes / 2>(sums_);
        // Where lanes have one value, several have the same.
        constexpr int kSame = maxOf(1, kLanes / kCount);
        if (kSame == 1 || thread.k % kSame == 0)
        {
            WPK_UNROLL
            for (int i = 0; i < kHeld; ++i)
            {
                const int row = (first + i) / Shape::columns, column = (first + i) % Shape::columns;
                tiles[(thread.k / kLanes * Shape::blockM + row) * Shape::blockN + thread.column() + column] = sums_[i];
            }
        }
        __syncthreads(); // @sums_met
        WPK_UNROLL
        for (int i = 0; i < kOutputs; ++i)
        {
            const int item = static_cast<int>(threadIdx.x) + i * Shape::threads;
            Sum sum = 0;
            if (kTile % Shape::threads == 0 || item < kTile)
            {
                sum = tiles[item];
                WPK_UNROLL
                for (int slice = 1; slice < kSlices; ++slice)
                    sum += tiles[slice * kTile + item];
            }
            results[i] = sum;
        }
    }

private:
    Sum sums_[kCount] = {};
};

namespace detail
{

// Elements of a tile from number `item` on, Threads apart: what the epilogue reads of them is on its way while the
// product is computed.
template <class Problem, int Columns, int Tile, int Threads, int Count>
class SkinnyElements
{
    using List = EpilogueColumns<Problem, MatrixRows, 1>;

public:
    WPK_DEVICE SkinnyElements(const OutputWindow<MatrixRows>& window, int item)
        : row_(item < Tile ? window.firstRow + item / Columns : window.rowEnd),
          rowEnd_(window.rowEnd),
          columns_(window, item % Columns),
          others_(window, item + Threads)
    {
        if (row_ < rowEnd_)
            columns_.fetch(row_, fetched_);
    }

    template <class Sum, int Held>
    WPK_DEVICE void store(const Sum (&sums)[Held]) const
    {
        using Number = NumberOf<typename Problem::Epilogue>;
        const Number value[1] = {toNumber<Number>(sums[Held - Count])};
        if (row_ < rowEnd_) // @rows_stored
            columns_.store(row_, value, fetched_);
        others_.store(sums);
    }

private:
    int row_, rowEnd_;
    List columns_;
    typename List::Fetched fetched_;
    SkinnyElements<Problem, Columns, Tile, Threads, Count - 1> others_;
};

template <class Problem, int Columns, int Tile, int Threads>
class SkinnyElements<Problem, Columns, Tile, Threads, 0>
{
public:
    WPK_DEVICE SkinnyElements(const OutputWindow<MatrixRows>&, int) {}

    template <class Sum, int Held>
    WPK_DEVICE void store(const Sum (&)[Held]) const
    {
    }
};

} // namespace detail

// A thread's elements of the output.
template <class Problem, class Shape>
class SkinnyOutputs
{
    static constexpr int kTile = Shape::blockM * Shape::blockN;

public:
    explicit WPK_DEVICE SkinnyOutputs(const OutputWindow<MatrixRows>& window)
        : elements_(window, static_cast<int>(threadIdx.x))
    {
    }

    template <class Sum, int Count>
    WPK_DEVICE void store(const Sum (&sums)[Count]) const
    {
        elements_.store(sums);
    }

private:
    detail::SkinnyElements<Problem, Shape::blockN, kTile, Shape::threads, ceilDivide(kTile, Shape::threads)> elements_;
};

} // namespace wpk
