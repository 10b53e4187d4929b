// Running sums and products along rows.
//
// A block has `rows` rows with `splits` threads each. Where a row has several, they take as many of its elements at a
// time, combine them in shared memory in log2(splits) steps (Hillis and Steele), and carry the last result on.
// Neighbouring threads walk the axis along which y is contiguous: the rows' own (alongRow), or the one across them.
//
// Problem: X and Y over (leading, o1, o2, o3, size); size; kind; exclusive; reverse; alongRow.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/numbers/widened.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>

namespace wpk
{

enum class ScanKind
{
    sum,
    prod
};

namespace detail
{

template <ScanKind Kind, class Value>
WPK_DEVICE Value scanIdentity()
{
    return static_cast<Value>(Kind == ScanKind::prod ? 1 : 0);
}

template <ScanKind Kind, class Value>
WPK_DEVICE Value scanTwo(Value before, Value after)
{
    return static_cast<Value>(Kind == ScanKind::prod ? before * after : before + after);
}

// What the threads of a row hold, combined up to each of them; `before` gets the result up to the one before, and
// `all` that of all. All threads of a block call it.
template <ScanKind Kind, int Rows, int Splits, class Value>
WPK_DEVICE Value scanShares(int row, int share, Value value, Value& before, Value& all)
{
    if constexpr (Splits == 1)
    {
        before = scanIdentity<Kind, Value>();
        all = value;
    }
    else
    {
        __shared__ Value shares[Splits * Rows];
        Value* const own = shares + share * Rows + row;
        __syncthreads(); // @chunk_is_over
        *own = value;
        for (int distance = 1; distance < Splits; distance *= 2)
        {
            __syncthreads(); // @values_written
            const Value earlier = share >= distance ? own[-distance * Rows] : scanIdentity<Kind, Value>();
            __syncthreads(); // @values_read
            value = scanTwo<Kind>(earlier, value);
            *own = value;
        }
        __syncthreads(); // @scanned
        before = share > 0 ? own[-Rows] : scanIdentity<Kind, Value>();
        all = shares[(Splits - 1) * Rows + row];
    }
    return value;
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void prefixScan(Inputs<1> inputs, int n, void* y)
{
    using X = typename Problem::X;
    using Y = typename Problem::Y;
    using Value = decltype(widened(typename X::Type{}));
    constexpr int rows = Schedule::rows, splits = Schedule::splits;
    using Place = Domain<Problem::wide, Problem::o1, Problem::o2, Problem::o3>;
    const int thread = static_cast<int>(threadIdx.x);
    const int row = Problem::alongRow ? thread / splits : thread % rows;
    const int share = Problem::alongRow ? thread % splits : thread / rows;
    const int64 item = static_cast<int64>(blockIdx.x) * rows + row;
    const bool inside = item < Place::items(n);
    const Place at(inside ? item : 0);
    const auto* const from =
        static_cast<const typename X::Type*>(inputs.at[0]) + X::offset(at.leading, at.at[0], at.at[1], at.at[2], 0);
    auto* const to = static_cast<typename Y::Type*>(y) + Y::offset(at.leading, at.at[0], at.at[1], at.at[2], 0);
    constexpr Value identity = Problem::kind == ScanKind::prod ? 1 : 0;
    Value carried = identity;
    startIfEarly<Schedule>(); // @previous_awaited
    WPK_KEEP_LOOP
    for (int first = 0; first < Problem::size; first += splits)
    {
        const int turn = first + share;
        const bool present = inside && turn < Problem::size; // @row_ends
        const int place = Problem::reverse ? Problem::size - 1 - turn : turn;
        Value value = identity;
        if (present)
            value = widened(load<typename X::Type, 1>(from + place * X::rowStride)[0]);
        Value before, all;
        value = detail::scanShares<Problem::kind, rows, splits>(row, share, value, before, all);
        const Value result = detail::scanTwo<Problem::kind>(carried, Problem::exclusive ? before : value);
        if (present)
            store<typename Y::Type, 1>(to + place * Y::rowStride, {{narrowed<typename Y::Type>(result)}});
        carried = detail::scanTwo<Problem::kind>(carried, all);
    }
}

} // namespace wpk
