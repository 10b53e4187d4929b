// Where the largest or smallest element of each row is.
//
// A block looks at `outputs` rows with `splits` threads each: every thread finds the first of its share in registers,
// then the shares meet in shared memory, halving their number. Neighbouring threads walk the axis along which x is
// contiguous: the rows' own (alongRow), or the one across them.
//
// Problem: X over (leading, o1, o2, o3, size), Y over (leading, o1, o2, o3); size; largest; last; alongRow.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/rows/ranking.cuh>

namespace wpk
{

namespace detail
{

// The first of the elements of all shares; in share 0.
template <int Outputs, int Splits, class Element>
WPK_DEVICE void meetShares(int output, int share, Element& first)
{
    if constexpr (Splits > 1)
    {
        __shared__ Element shares[Splits * Outputs];
        Element* const own = shares + share * Outputs + output;
        *own = first;
        for (int half = Splits / 2; half > 0; half /= 2)
        {
            __syncthreads(); // @shares_written
            if (share >= half)
                continue;
            if (own[half * Outputs].isBefore(first))
                *own = first = own[half * Outputs];
        }
    }
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void argReduction(Inputs<1> inputs, int n, void* y)
{
    using X = typename Problem::X;
    using Y = typename Problem::Y;
    using Rows = Ranking<Problem>;
    constexpr int outputs = Schedule::outputs, splits = Schedule::splits;
    using Place = Domain<Problem::wide, Problem::o1, Problem::o2, Problem::o3>;
    const int thread = static_cast<int>(threadIdx.x);
    const int output = Problem::alongRow ? thread / splits : thread % outputs;
    const int share = Problem::alongRow ? thread % splits : thread / outputs;
    const int64 item = static_cast<int64>(blockIdx.x) * outputs + output;
    const bool inside = item < Place::items(n);
    const Place at(inside ? item : 0);
    auto first = Rows::Element::behindAll();
    startIfEarly<Schedule>(); // @previous_awaited
    if (inside)
    {
        const auto* const row =
            static_cast<const typename X::Type*>(inputs.at[0]) + X::offset(at.leading, at.at[0], at.at[1], at.at[2], 0);
        for (int index = share; index < Problem::size; index += splits) // @share_ends
        {
            const auto element = Rows::element(row, index);
            if (element.isBefore(first))
                first = element;
        }
    }
    detail::meetShares<outputs, splits>(output, share, first);
    if (!inside || share != 0) // @idle_threads_end
        return;
    auto* const to = static_cast<typename Y::Type*>(y) + Y::offset(at.leading, at.at[0], at.at[1], at.at[2]);
    store<typename Y::Type, 1>(to, {{static_cast<typename Y::Type>(Rows::indexOf(first))}});
}

} // namespace wpk
