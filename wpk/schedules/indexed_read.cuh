// Elements read where an index tensor says; V neighbouring elements of the output to a thread.
//
// Problem: Y, Data and Index over (leading, o1, o2, row), where Data's and Index's strides along the axes that the
// indices pick, and along the numbers of an index, stand apart: Picked, indexStep; sharesIndex: a row has one
// index; rowPadding: zeros that follow y's rows.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/outside_value.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/places/picked_axes.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void indexedRead(Inputs<2> inputs, int n, void* y)
{
    using Data = typename Problem::Data;
    using Index = typename Problem::Index;
    using Y = typename Problem::Y;
    using T = typename Data::Type;
    constexpr int V = Schedule::vector;
    using Part = RowPart<Problem::row, Problem::rowPadding, V>;
    using Place = Domain<Problem::wide, Problem::o1, Problem::o2, Part::chunks>;
    const int64 item = firstItem<Schedule::threads>();
    startIfEarly<Schedule>();    // @previous_awaited
    if (item >= Place::items(n)) // @idle_threads_end
        return;
    const Place at(item);
    const Part part(at.at[2]);
    const int64 row = Data::offset(at.leading, at.at[0], at.at[1], part.start);
    const typename Index::Type* const index = static_cast<const typename Index::Type*>(inputs.at[1])
                                              + Index::offset(at.leading, at.at[0], at.at[1], part.start);
    T values[V];
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
        values[v] = outsideValue<T>();
    if constexpr (Problem::sharesIndex)
    {
        const int64 place = part.valid > 0 ? Problem::Picked::offset(index, Problem::indexStep) : -1;
        if (place >= 0)
            loadRow<Data, V>(inputs.at[0], row + place, part.valid, values);
    }
    else
    {
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
        {
            if (v >= part.valid) // @row_ends
                continue;
            const int64 place = Problem::Picked::offset(index + v * Index::rowStride, Problem::indexStep);
            const int64 element = row + v * Data::rowStride + place;
            if (place >= 0)
                values[v] = load<T, 1>(static_cast<const T*>(inputs.at[0]) + element)[0];
        }
    }
    typename Y::Type moved[V];
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
        moved[v] = convertElement<typename Y::Type>(values[v]);
    storeRow<Y, V>(y, Y::offset(at.leading, at.at[0], at.at[1], part.start), part.valid, part.room, moved);
}

} // namespace wpk
