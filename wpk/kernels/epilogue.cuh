// What happens to accumulators before they are stored: the problem's expression over the accumulator
// and the epilogue's operands, the rounding to y's type, and the zeros of y's padding.
//
// Matrix-like kernels see their output as rows (pixels of a convolution, rows of a matrix) and columns (filters).
// A row map turns a row into the offset of its first column in a tensor; columns have a stride of their own.
#pragma once

#include <wpk/kernels/expression.cuh>
#include <wpk/kernels/operands.cuh>
#include <wpk/kernels/vector.cuh>

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

// V columns of one row, widened; columns from `valid` on are not read, except by the vector that `valid`
// cuts, which the tensor's padding must then allow.
template <class Tensor, int V>
WPK_DEVICE void loadColumns(const void* tensor, int64 row, int column, int valid, float (&values)[V])
{
    using T = typename Tensor::Type;
    const T* const at = static_cast<const T*>(tensor) + row;
    if constexpr (Tensor::column == 0)
    {
        const float value = toFloat(at[0]);
        WPK_UNROLL
        for (int e = 0; e < V; ++e)
            values[e] = value;
    }
    else if constexpr (Tensor::width > 1)
    {
        static_assert(V % Tensor::width == 0, "an operand's vectors divide the output's");
        WPK_UNROLL
        for (int e = 0; e < V; e += Tensor::width)
        {
            Vector<T, Tensor::width> vector = zeroVector<T, Tensor::width>();
            if (column + e < valid)
                vector = load<T, Tensor::width>(at + column + e);
            WPK_UNROLL
            for (int i = 0; i < Tensor::width; ++i)
                values[e + i] = toFloat(vector[i]);
        }
    }
    else
    {
        WPK_UNROLL
        for (int e = 0; e < V; ++e)
        {
            values[e] = column + e < valid ? toFloat(at[(column + e) * Tensor::column]) : 0.0f;
        }
    }
}

template <class List>
struct OperandLoader;
template <class... Ts>
struct OperandLoader<Tensors<Ts...>>
{
    // Loads those operands that are the same in every row (PerColumn), or all the others.
    template <bool PerColumn, class Rows, int N, int V>
    static WPK_DEVICE void loadAll(
        const Rows& rows, int row, const void* const* tensors, int column, int valid, float (&values)[N][V])
    {
        int i = 0;
        (loadOne<Ts, PerColumn>(rows, row, tensors, column, valid, values, i), ...);
    }

private:
    template <class Tensor, bool PerColumn, class Rows, int N, int V>
    static WPK_DEVICE void loadOne(
        const Rows& rows, int row, const void* const* tensors, int column, int valid, float (&values)[N][V], int& i)
    {
        if constexpr (Tensor::isPerColumn == PerColumn)
        {
            const int64 offset = PerColumn ? 0 : rows.template offset<Tensor>(row);
            loadColumns<Tensor>(tensors[i], offset, column, valid, values[i]);
        }
        ++i;
    }
};

} // namespace detail

// V neighbouring columns of the output, for any number of rows. Operands that do not depend on the row
// are loaded once, here. `valid` is the end of the columns that exist, `stored` the end of those that
// are written: the columns between are y's padding and become zero. Problem has the types Y, Operands
// and Epilogue.
template <class Problem, class Rows, int V>
class EpilogueColumns
{
    using Y = typename Problem::Y;
    using YType = typename Y::Type;
    using List = typename Problem::Operands;
    static constexpr int kOperands = List::count > 0 ? List::count : 1;
    static_assert(V % Y::width == 0, "stores are whole vectors");

public:
    WPK_DEVICE EpilogueColumns(
        const Rows& rows, const void* const* operands, void* y, int column, int valid, int stored)
        : rows_(rows), operands_(operands), y_(static_cast<YType*>(y)), column_(column), valid_(valid), stored_(stored)
    {
        if (column_ < stored_)
        {
            detail::OperandLoader<List>::template loadAll<true>(rows_, 0, operands_, column_, valid_, values_);
        }
    }

    // Computes and writes the columns of one row from its accumulators.
    WPK_DEVICE void store(int row, const float (&accumulators)[V])
    {
        if (column_ >= stored_)
            return;
        detail::OperandLoader<List>::template loadAll<false>(rows_, row, operands_, column_, valid_, values_);
        constexpr int width = Y::width;
        YType* const out = y_ + rows_.template offset<Y>(row);
        WPK_UNROLL
        for (int e = 0; e < V; e += width)
        {
            Vector<YType, width> vector;
            WPK_UNROLL
            for (int i = 0; i < width; ++i)
                vector[i] = fromFloat<YType>(evaluate(e + i, accumulators[e + i]));
            if (column_ + e < stored_)
                wpk::store<YType, width>(out + (column_ + e) * Y::column, vector);
        }
    }

private:
    WPK_DEVICE float evaluate(int e, float accumulator) const
    {
        float operands[kOperands] = {};
        WPK_UNROLL
        for (int i = 0; i < List::count; ++i)
            operands[i] = values_[i][e];
        const float value = Problem::Epilogue::evaluate(accumulator, operands);
        return column_ + e < valid_ ? value : 0.0f;
    }

    Rows rows_;
    const void* const* operands_;
    YType* y_;
    int column_, valid_, stored_;
    float values_[kOperands][V];
};

} // namespace wpk
