// One expression over a domain, written row by row; V neighbouring elements of a row to an item, and several
// items to a thread, whose loads are all under way before the first is used.
//
// Problem: Operands and Y over (leading, d1, d2, d3, row); Expression; isCopy (the expression is its only
// operand, moved without passing through float); rowPadding: zeros that follow y's rows. The last axis is the
// one along which y is contiguous.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>

namespace wpk
{

namespace detail
{

template <class List>
struct FirstOf;
template <class First, class... Rest>
struct FirstOf<Tensors<First, Rest...>>
{
    using Type = First;
};

// The values of one item between its loads and its store.
template <class Problem, int V, bool IsCopy>
struct Item
{
    using Y = typename Problem::Y;
    using Number = NumberOf<typename Problem::Expression>;
    OperandRows<typename Problem::Operands, V, Number> operands;

    template <class... Index>
    WPK_DEVICE void load(const void* const* inputs, int valid, Index... place)
    {
        operands.load(inputs, valid, place...);
    }

    WPK_DEVICE void store(void* y, int64 offset, int valid, int room) const
    {
        using Stored = Result<typename Y::Type, typename Problem::Expression>;
        Number numbers[V] = {};
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
        {
            if (v < valid)
                numbers[v] = Stored::number(Number(0), operands.values[v]);
        }
        typename Y::Type row[V];
        Stored::store(numbers, row);
        storeRow<Y, V>(y, offset, valid, room, row);
    }
};

template <class Problem, int V>
struct Item<Problem, V, true>
{
    using X = typename FirstOf<typename Problem::Operands>::Type;
    using Y = typename Problem::Y;
    typename X::Type values[V];

    template <class... Index>
    WPK_DEVICE void load(const void* const* inputs, int valid, Index... place)
    {
        loadRow<X, V>(inputs[0], X::offset(place...), valid, values);
    }

    WPK_DEVICE void store(void* y, int64 offset, int valid, int room) const
    {
        typename Y::Type row[V];
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            row[v] = convertElement<typename Y::Type>(values[v]);
        storeRow<Y, V>(y, offset, valid, room, row);
    }
};

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void elementwise(Inputs<Problem::Operands::count> inputs, int n, void* y)
{
    using Y = typename Problem::Y;
    constexpr int V = Schedule::vector, count = Schedule::items, threads = Schedule::threads;
    using Part = RowPart<Problem::row, Problem::rowPadding, V>;
    using Place = Domain<Problem::wide, Problem::d1, Problem::d2, Problem::d3, Part::chunks>;
    const int64 first = firstItem<threads * count>(), end = Place::items(n);
    detail::Item<Problem, V, Problem::isCopy> items[count];
    releaseIfEarly<Schedule>();
    WPK_UNROLL
    for (int i = 0; Problem::operand_constants != 0 && i < count; ++i)
    {
        const int64 index = first + i * threads;
        if (index >= end)
            break;
        const Place at(index);
        const Part part(at.at[3]);
        if (part.valid > 0)
            prefetchConstants<Problem::operand_constants>(
                typename Problem::Operands{}, inputs.at, at.leading, at.at[0], at.at[1], at.at[2], part.start);
    }
    waitIfEarly<Schedule>(); // @previous_awaited
    WPK_UNROLL
    for (int i = 0; i < count; ++i)
    {
        const int64 index = first + i * threads;
        if (index >= end)
            break;
        const Place at(index);
        const Part part(at.at[3]);
        if (part.valid > 0)
        {
            items[i].load(inputs.at, part.valid, at.leading, at.at[0], at.at[1], at.at[2], part.start);
        }
    }
    WPK_UNROLL
    for (int i = 0; i < count; ++i)
    {
        const int64 index = first + i * threads;
        if (index >= end)
            break;
        const Place at(index);
        const Part part(at.at[3]);
        items[i].store(y, Y::offset(at.leading, at.at[0], at.at[1], at.at[2], part.start), part.valid, part.room);
    }
}

} // namespace wpk
