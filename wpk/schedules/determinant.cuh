// Determinants of square matrices, by elimination with row pivots.
//
// A block has `matrices` of them in shared memory, in fp32 (fp64 where X is that), with `splits` threads each, which
// share the rows of a column while its pivot divides it, and the columns while they are eliminated. The product of the
// pivots is the determinant; each exchange of rows turns its sign.
//
// Problem: X and Y over (leading, o1, o2, o3); size; rowStride and columnStride: elements between the neighbours of a
// column and of a row of X; rowsFastest: neighbouring threads load neighbours of a row.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>

namespace wpk
{

namespace detail
{

// The row of the largest element of a column from row `first` on, the first of equals; NaN is larger than all.
template <int Size, int Pitch, class Number>
WPK_DEVICE int pivotRow(const Number* matrix, int first)
{
    int pivot = first;
    Number largest = magnitude(matrix[first * Pitch + first]);
    for (int row = first + 1; row < Size; ++row)
    {
        const Number value = magnitude(matrix[row * Pitch + first]);
        if (!(value <= largest) && largest == largest) // @largest_chosen
        {
            largest = value;
            pivot = row;
        }
    }
    return pivot;
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void determinant(Inputs<1> inputs, int n, void* y)
{
    using X = typename Problem::X;
    using Y = typename Problem::Y;
    using Number = Select<isSame<typename X::Type, double>, double, float>;
    constexpr int size = Problem::size, splits = Schedule::splits, matrices = Schedule::matrices;
    constexpr int pitch = size | 1, whole = (size * pitch) | 1; // odd: neighbours lie in different banks
    using Place = Domain<Problem::wide, Problem::o1, Problem::o2, Problem::o3>;
    __shared__ Number held[matrices * whole];
    const int thread = static_cast<int>(threadIdx.x), share = thread % splits;
    Number* const matrix = held + thread / splits * whole;
    const int64 item = static_cast<int64>(blockIdx.x) * matrices + thread / splits;
    const bool inside = item < Place::items(n);
    const Place at(inside ? item : 0);
    const auto* const from =
        static_cast<const typename X::Type*>(inputs.at[0]) + X::offset(at.leading, at.at[0], at.at[1], at.at[2]);
    startIfEarly<Schedule>(); // @previous_awaited
    for (int element = share; element < size * size; element += splits)
    {
        const int first = element / size, second = element % size;
        const int row = Problem::rowsFastest ? first : second, column = Problem::rowsFastest ? second : first;
        const int64 offset = row * Problem::rowStride + column * Problem::columnStride;
        matrix[row * pitch + column] =
            inside ? toNumber<Number>(load<typename X::Type, 1>(from + offset)[0]) : Number(0);
    }
    Number product = 1;
    WPK_KEEP_LOOP
    for (int step = 0; step < size; ++step)
    {
        __syncthreads(); // @columns_eliminated
        const int pivot = detail::pivotRow<size, pitch>(matrix, step);
        const Number divisor = matrix[pivot * pitch + step];
        product *= pivot == step ? divisor : -divisor; // @sign_turned
        __syncthreads();                               // @pivot_found
        for (int column = step + share; pivot != step && column < size; column += splits)
        {
            const Number other = matrix[step * pitch + column];
            matrix[step * pitch + column] = matrix[pivot * pitch + column];
            matrix[pivot * pitch + column] = other;
        }
        __syncthreads(); // @rows_exchanged
        for (int row = step + 1 + share; divisor != Number(0) && row < size; row += splits)
            matrix[row * pitch + step] /= divisor;
        __syncthreads(); // @column_divided
        for (int column = step + 1 + share; divisor != Number(0) && column < size; column += splits)
        {
            const Number above = matrix[step * pitch + column];
            for (int row = step + 1; row < size; ++row)
                matrix[row * pitch + column] -= matrix[row * pitch + step] * above;
        }
    }
    if (inside && share == 0)
    {
        auto* const to = static_cast<typename Y::Type*>(y) + Y::offset(at.leading, at.at[0], at.at[1], at.at[2]);
        store<typename Y::Type, 1>(to, {{fromNumber<typename Y::Type>(product)}});
    }
}

} // namespace wpk
