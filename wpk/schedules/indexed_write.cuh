// Updates written where an index tensor says; V neighbouring elements of the output to a thread, which looks through
// all updates that may go there, in their order. So nothing is written twice, and equal inputs give equal sums.
//
// Problem: Data and Y over (leading, other, size, inner), Updates over (leading, other, count, inner), Index over the
// same, and indexStep elements between its numbers; Picked: the axes whose places make the size; other; size; count;
// inner; kind; advance; sharesIndex: a row has one index; rowPadding: zeros that follow y's rows.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/numbers/widened.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/places/written_place.cuh>

namespace wpk
{

enum class WriteKind
{
    none,
    add,
    mul,
    max,
    min
};

namespace detail
{

// What an update makes of the element that is there.
template <WriteKind Kind, class Value>
WPK_DEVICE Value updated(Value there, Value update)
{
    if constexpr (Kind == WriteKind::none)
    {
        return update;
    }
    else if constexpr (Kind == WriteKind::add)
    {
        return static_cast<Value>(there + update);
    }
    else if constexpr (Kind == WriteKind::mul)
    {
        return static_cast<Value>(there * update);
    }
    else if constexpr (isSame<Value, float> || isSame<Value, double>)
    {
        return Kind == WriteKind::max ? larger(there, update) : smaller(there, update);
    }
    else
    {
        return (Kind == WriteKind::max) == (update > there) ? update : there;
    }
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void indexedWrite(Inputs<3> inputs, int n, void* y)
{
    using Data = typename Problem::Data;
    using Index = typename Problem::Index;
    using Updates = typename Problem::Updates;
    using Y = typename Problem::Y;
    using T = typename Data::Type;
    using Value = decltype(widened(T{}));
    constexpr int V = Schedule::vector;
    using Part = RowPart<Problem::inner, Problem::rowPadding, V>;
    using Place = Domain<Problem::wide, Problem::other, Problem::size, Part::chunks>;
    const int64 item = firstItem<Schedule::threads>();
    startIfEarly<Schedule>();    // @previous_awaited
    if (item >= Place::items(n)) // @idle_threads_end
        return;
    const Place at(item);
    const Part part(at.at[2]);
    T row[V] = {};
    if (part.valid > 0)
        loadRow<Data, V>(inputs.at[0], Data::offset(at.leading, at.at[0], at.at[1], part.start), part.valid, row);
    Value values[V];
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
        values[v] = widened(row[v]);
    const int updates = part.valid > 0 ? Problem::count : 0;
    for (int update = 0; update < updates; ++update)
    {
        const typename Index::Type* const index = static_cast<const typename Index::Type*>(inputs.at[1])
                                                  + Index::offset(at.leading, at.at[0], update, part.start);
        const int64 from = Updates::offset(at.leading, at.at[0], update, part.start);
        if constexpr (Problem::sharesIndex)
        {
            if (writtenPlace<Problem>(index, update) != at.at[1])
                continue;
            loadRow<Updates, V>(inputs.at[2], from, part.valid, row);
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
                values[v] = detail::updated<Problem::kind>(values[v], widened(row[v]));
        }
        else
        {
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
            {
                if (v >= part.valid) // @row_ends
                    continue;
                if (writtenPlace<Problem>(index + v * Index::rowStride, update) != at.at[1])
                    continue;
                const T own = load<T, 1>(static_cast<const T*>(inputs.at[2]) + from + v * Updates::rowStride)[0];
                values[v] = detail::updated<Problem::kind>(values[v], widened(own));
            }
        }
    }
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
        row[v] = narrowed<T>(values[v]);
    storeRow<Y, V>(y, Y::offset(at.leading, at.at[0], at.at[1], part.start), part.valid, part.room, row);
}

} // namespace wpk
