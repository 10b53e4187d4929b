// The indices of the first elements of rows: each thread counts how many stand before its element, which is its place.
//
// Problem: X over (leading, o1, o2, o3, size), Y over (leading, o1, o2, o3, count); size; count; largest; last.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/rows/ranking.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void topByRank(Inputs<1> inputs, int n, void* y)
{
    static_assert(Schedule::vector == 1, "a thread has one element");
    using X = typename Problem::X;
    using Y = typename Problem::Y;
    using Rows = Ranking<Problem>;
    using Place = Domain<Problem::wide, Problem::o1, Problem::o2, Problem::o3, Problem::size>;
    const int64 item = firstItem<Schedule::threads>();
    startIfEarly<Schedule>();    // @previous_awaited
    if (item >= Place::items(n)) // @idle_threads_end
        return;
    const Place at(item);
    const auto* const row =
        static_cast<const typename X::Type*>(inputs.at[0]) + X::offset(at.leading, at.at[0], at.at[1], at.at[2], 0);
    const auto own = Rows::element(row, at.at[3]);
    int before = 0;
    for (int index = 0; index < Problem::size; ++index)
        before += Rows::element(row, index).isBefore(own) ? 1 : 0;
    if (before >= Problem::count) // @others_are_left_out
        return;
    auto* const to = static_cast<typename Y::Type*>(y) + Y::offset(at.leading, at.at[0], at.at[1], at.at[2], before);
    store<typename Y::Type, 1>(to, {{static_cast<typename Y::Type>(Rows::indexOf(own))}});
}

} // namespace wpk
