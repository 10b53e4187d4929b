// Rows picked by index; V neighbouring elements of a row to a thread.
//
// Problem: Data over (outer, axis, inner), Index over (outer, count), Y over (outer, count, inner); axisSize;
// inner; rowPadding: zeros that follow y's rows. The run-time extent is `outer`, or `count` where
// countIsLeading (then outer is 1 and tensors stand over (count, outer, inner)).
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/outside_value.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void gather(Inputs<2> inputs, int n, void* y)
{
    using Data = typename Problem::Data;
    using Index = typename Problem::Index;
    using Y = typename Problem::Y;
    using T = typename Data::Type;
    constexpr int V = Schedule::vector;
    using Part = RowPart<Problem::inner, Problem::rowPadding, V>;
    using Place = Domain<Problem::wide, Problem::other, Part::chunks>;
    const int64 item = firstItem<Schedule::threads>();
    startIfEarly<Schedule>();    // @previous_awaited
    if (item >= Place::items(n)) // @idle_threads_end
        return;
    const Place at(item);
    const Part part(at.at[1]);
    const int64 indexOffset = Index::offset(at.leading, at.at[0]);
    int64 picked = static_cast<int64>(static_cast<const typename Index::Type*>(inputs.at[1])[indexOffset]);
    if (picked < 0)
        picked += Problem::axisSize;
    T values[V];
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
        values[v] = outsideValue<T>();
    if (part.valid > 0 && picked >= 0 && picked < Problem::axisSize)
    {
        const int64 row = Data::offset(at.leading, at.at[0], part.start) + picked * Problem::axisStride;
        loadRow<Data, V>(inputs.at[0], row, part.valid, values);
    }
    typename Y::Type moved[V];
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
        moved[v] = convertElement<typename Y::Type>(values[v]);
    storeRow<Y, V>(y, Y::offset(at.leading, at.at[0], part.start), part.valid, part.room, moved);
}

} // namespace wpk
