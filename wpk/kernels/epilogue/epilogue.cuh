// What happens to accumulators before they are stored: the problem's expression over the accumulator
// and the epilogue's operands, the rounding to y's type, and the zeros of y's padding.
//
// Matrix-like kernels see their output as rows (pixels of a convolution, rows of a matrix) and columns (filters).
// A row map turns a row into the offset of its first column in a tensor; columns have a stride of their own.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/epilogue/output_window.cuh>
#include <wpk/kernels/numbers/expression.cuh>
#include <wpk/kernels/operands/operands.cuh>
#include <wpk/kernels/sums/row_moments.cuh>

namespace wpk
{

// A tensor over the output domain: strides of the three row axes and of the columns, in elements.
// Width is how many columns one aligned access may move (1 unless Column is 1).
template <class T, int Width, int64 Outer, int64 Middle, int64 Inner, int64 Column>
struct Strided
{
    static_assert(Width == 1 || Column == 1, "vector accesses need contiguous columns");
    using Type = T;
    static constexpr int width = Width;
    static constexpr int64 outer = Outer, middle = Middle, inner = Inner, column = Column;
    static constexpr bool isPerColumn = Outer == 0 && Middle == 0 && Inner == 0;
    static constexpr bool inShared = false;
};

// An operand that a map of rows has in shared memory (wgmma/residual.cuh).
template <class Tensor>
struct InShared : Tensor
{
    static constexpr bool inShared = true;
};

// Rows are pixels (n, p, q) of images of P x Q.
template <int P, int Q>
struct PixelRows
{
    template <class Tensor>
    WPK_DEVICE int64 offset(int row) const
    {
        if constexpr (Tensor::middle == Q * Tensor::inner && Tensor::outer == P * Tensor::middle)
        {
            return row * Tensor::inner;
        }
        else
        {
            const int image = row / (P * Q), pixel = row % (P * Q);
            return image * Tensor::outer + pixel / Q * Tensor::middle + pixel % Q * Tensor::inner;
        }
    }
};

// Rows are those of one matrix of a batch (outer, middle).
struct MatrixRows
{
    int outer, middle;
    template <class Tensor>
    WPK_DEVICE int64 offset(int row) const
    {
        return outer * Tensor::outer + middle * Tensor::middle + row * Tensor::inner;
    }
};

namespace detail
{

// A vector of numbers that are computed with later, those of less than a register in whole ones.
template <class T, int N>
class HeldVector
{
    static constexpr int kBits = 8 * static_cast<int>(sizeof(T)), kOfWord = kBits < 32 ? 32 / kBits : 1;
    static constexpr bool isWords = kOfWord > 1 && N % kOfWord == 0;

public:
    HeldVector() = default;
    WPK_DEVICE HeldVector(const Vector<T, N>& vector)
    {
        memcpy(&held_, &vector, sizeof held_);
    }
    WPK_DEVICE T operator[](int i) const
    {
        if constexpr (isWords)
        {
            const uint32 word = held_[i / kOfWord] >> (i % kOfWord * kBits);
            T value;
            memcpy(&value, &word, sizeof value);
            return value;
        }
        else
        {
            return held_[i];
        }
    }

private:
    Select<isWords, Vector<uint32, isWords ? N / kOfWord : 1>, Vector<T, N>> held_;
};

// V neighbouring columns of one row of an operand, as they lie in memory. Ahead as in EpilogueColumns.
template <class Tensor, int V, bool Ahead>
class OperandColumns
{
    using T = typename Tensor::Type;
    static constexpr int kWidth = Tensor::column == 0 ? 1 : Tensor::width;
    static constexpr int kVectors = Tensor::column == 0 ? 1 : V / kWidth;
    static_assert(V % Tensor::width == 0, "an operand's vectors divide the output's");

public:
    // Columns from `valid` on are not read, except by the vector that `valid` cuts, which the tensor's padding must
    // then allow.
    template <class Rows>
    WPK_DEVICE void load(const Rows& rows, int row, const void* tensor, int column, int valid)
    {
        if constexpr (Tensor::inShared)
        {
            WPK_UNROLL
            for (int i = 0; i < kVectors; ++i)
                vectors_[i] = rows.template residual<T, kWidth>(row, column + i * kWidth);
        }
        else
        {
            const int64 offset = Tensor::isPerColumn ? 0 : rows.template offset<Tensor>(row);
            const T* const at = static_cast<const T*>(tensor) + offset;
            WPK_UNROLL
            for (int i = 0; i < kVectors; ++i)
            {
                const int first = column + i * kWidth;
                vectors_[i] = zeroVector<T, kWidth>();
                if (Tensor::column == 0 || first < valid)
                    vectors_[i] = wpk::load<T, kWidth>(at + first * Tensor::column);
            }
        }
    }

    // Column `e` as a number to compute with.
    template <class Number>
    WPK_DEVICE Number number(int e) const
    {
        return toNumber<Number>(Tensor::column == 0 ? vectors_[0][0] : vectors_[e / kWidth][e % kWidth]);
    }

private:
    Select<Ahead, HeldVector<T, kWidth>, Vector<T, kWidth>> vectors_[kVectors];
};

// The same of a list of operands: of those that are the same in every row (PerColumn), or of all others.
template <bool PerColumn, int V, bool Ahead, class List>
struct OperandsColumns;

template <bool PerColumn, int V, bool Ahead>
struct OperandsColumns<PerColumn, V, Ahead, Tensors<>>
{
    template <class Rows>
    WPK_DEVICE void load(const Rows&, int, const void* const*, int, int)
    {
    }
    template <class Number>
    WPK_DEVICE void widen(int, Number*) const
    {
    }
};

template <bool PerColumn, int V, bool Ahead, class Tensor, class... Others>
struct OperandsColumns<PerColumn, V, Ahead, Tensors<Tensor, Others...>>
{
    template <class Rows>
    WPK_DEVICE void load(const Rows& rows, int row, const void* const* tensors, int column, int valid)
    {
        if constexpr (Tensor::isPerColumn == PerColumn)
            first.load(rows, row, tensors[0], column, valid);
        others.load(rows, row, tensors + 1, column, valid);
    }

    // Column `e` of each of these operands to its place among all.
    template <class Number>
    WPK_DEVICE void widen(int e, Number* operands) const
    {
        if constexpr (Tensor::isPerColumn == PerColumn)
            operands[0] = first.template number<Number>(e);
        others.widen(e, operands + 1);
    }

    OperandColumns<Tensor, V, Ahead> first;
    OperandsColumns<PerColumn, V, Ahead, Tensors<Others...>> others;
};

} // namespace detail

// V neighbouring columns of an output window, from its column `column` on, for any number of its rows. Operands that
// do not depend on the row are loaded once, here. y's padding becomes zero. Problem has the types Y, Operands and
// Epilogue.
//
// What is fetched of several rows before the first of them is stored is under way at once: a store may change what a
// load behind it reads, so the compiler cannot ask for it earlier.
//
// InLoop: for many tiles one after another. Then what does not exist is zero, so that no register is unset on a way
// around the loop: ptxas would keep it from one tile to the next.
//
// Ahead: operands are fetched long before they are used, and are held as words. Where a row may not exist, compilers
// take vectors of smaller numbers apart right behind the load, which waits for it.
template <class Problem, class Rows, int V, bool InLoop = false, bool Ahead = false>
class EpilogueColumns
{
    using Y = typename Problem::Y;
    using YType = typename Y::Type;
    using List = typename Problem::Operands;
    using Number = NumberOf<typename Problem::Epilogue>;
    using Stored = Result<YType, typename Problem::Epilogue>;
    static_assert(V % Y::width == 0, "stores are whole vectors");

public:
    // The operands' columns of one row.
    using Fetched = detail::OperandsColumns<false, V, Ahead, List>;

    EpilogueColumns() = default;
    WPK_DEVICE EpilogueColumns(const OutputWindow<Rows>& window, int column)
        : rows_(window.rows),
          operands_(window.operands),
          y_(static_cast<YType*>(window.y)),
          moments_(window.moments),
          column_(window.firstColumn + column),
          valid_(window.columnEnd),
          stored_(window.storedColumns)
    {
        if (InLoop || column_ < stored_)
            ofColumns_.load(rows_, 0, operands_, column_, valid_);
    }

    WPK_DEVICE void fetch(int row, Fetched& fetched) const
    {
        if (InLoop || column_ < stored_)
            fetched.load(rows_, row, operands_, column_, valid_);
    }

    // Computes and writes the columns of one row from its accumulators.
    WPK_DEVICE void store(int row, const Number (&accumulators)[V], const Fetched& fetched) const
    {
        if (column_ >= stored_)
            return;
        constexpr int width = Y::width;
        YType* const out = y_ + rows_.template offset<Y>(row);
        WPK_UNROLL
        for (int e = 0; e < V; e += width)
        {
            Number numbers[width];
            WPK_UNROLL
            for (int i = 0; i < width; ++i)
                numbers[i] = evaluate(e + i, accumulators[e + i], fetched);
            Vector<YType, width> vector;
            Stored::store(numbers, vector.values);
            if (column_ + e < stored_)
                wpk::store<YType, width>(out + (column_ + e) * Y::column, vector);
        }
    }

    // The same of a row that is stored or not, with the moments of its columns: all lanes of a warp call it, and
    // neighbours have neighbouring columns of a row.
    WPK_DEVICE void storeWithMoments(
        int row, bool isStored, const Number (&accumulators)[V], const Fetched& fetched) const
    {
        using Moments = typename Problem::Moments;
        constexpr int width = Y::width, numbers = Moments::width, kGroup = momentsGroup(Problem::n);
        const bool stores = isStored && column_ < stored_;
        YType* const out = y_ + rows_.template offset<Y>(row) + column_;
        YType rounded[V];
        WPK_UNROLL
        for (int e = 0; e < V; e += width)
        {
            Number values[width];
            WPK_UNROLL
            for (int i = 0; i < width; ++i)
                values[i] = evaluate(e + i, accumulators[e + i], fetched);
            Vector<YType, width> vector;
            Stored::store(values, vector.values);
            WPK_UNROLL
            for (int i = 0; i < width; ++i)
                rounded[e + i] = vector[i];
            if (stores)
                wpk::store<YType, width>(out + e, vector);
        }
        const Vector<float, numbers> moments = momentsOfGroup<numbers, kGroup>(rounded); // @moments_of_rounded
        const int group = column_ / kGroup;                                              // @group_of_moments
        if (stores && column_ % kGroup == 0)
            wpk::store<float, numbers>(moments_ + rows_.template offset<Moments>(row) + group * numbers, moments);
    }

private:
    WPK_DEVICE Number evaluate(int e, Number accumulator, const Fetched& fetched) const
    {
        Number operands[List::count > 0 ? List::count : 1] = {};
        ofColumns_.widen(e, operands);
        fetched.widen(e, operands);
        const Number value = Stored::number(accumulator, operands);
        // Without padding, vectors that are stored have no other columns.
        return Problem::y_padding == 0 || column_ + e < valid_ ? value : Number(0);
    }

    Rows rows_;
    const void* const* operands_;
    YType* y_;
    float* moments_;
    int column_, valid_, stored_;
    detail::OperandsColumns<true, V, Ahead, List> ofColumns_;
};

} // namespace wpk
