// The indices of the first elements of rows, a row to a block: the best `kept` so far lie sorted in shared memory,
// and the next `kept` of the row are sorted behind them, until the row ends.
//
// Problem: X over (leading, o1, o2, o3, size), Y over (leading, o1, o2, o3, count); size; count; largest; last.
// Schedule: kept: a power of two that is no less than count.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/rows/ranking.cuh>

namespace wpk
{

namespace detail
{

// One stage of Batcher's bitonic sort: runs of `size` become sorted, those at odd multiples of it backwards. Of the
// pairs, only those from `firstPair` on are looked at. All threads of a block call it.
template <int Pairs, int Threads, class Element>
WPK_DEVICE void bitonicStage(Element* elements, int size, int firstPair)
{
    for (int stride = size / 2; stride > 0; stride /= 2)
    {
        __syncthreads(); // @pairs_written
        for (int pair = firstPair + static_cast<int>(threadIdx.x); pair < Pairs; pair += Threads)
        {
            const int low = 2 * pair - (pair & (stride - 1)), high = low + stride;
            const Element a = elements[low], b = elements[high];
            if (((low & size) == 0) == b.isBefore(a))
            {
                elements[low] = b;
                elements[high] = a;
            }
        }
    }
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void topBySorting(Inputs<1> inputs, int n, void* y)
{
    using X = typename Problem::X;
    using Y = typename Problem::Y;
    using Rows = Ranking<Problem>;
    using Element = typename Rows::Element;
    constexpr int kept = Schedule::kept, threads = Schedule::threads;
    using Place = Domain<Problem::wide, Problem::o1, Problem::o2, Problem::o3>;
    __shared__ Element elements[2 * kept];
    const int thread = static_cast<int>(threadIdx.x);
    const Place at(static_cast<int64>(blockIdx.x));
    startIfEarly<Schedule>(); // @previous_awaited
    const auto* const row =
        static_cast<const typename X::Type*>(inputs.at[0]) + X::offset(at.leading, at.at[0], at.at[1], at.at[2], 0);
    for (int index = thread; index < 2 * kept; index += threads)
        elements[index] = index < Problem::size ? Rows::element(row, index) : Element::behindAll(); // @row_ends
    for (int size = 2; size <= 2 * kept; size *= 2)
        detail::bitonicStage<kept, threads>(elements, size, 0);
    for (int first = 2 * kept; first < Problem::size; first += kept)
    {
        __syncthreads(); // @rest_is_over
        for (int index = thread; index < kept; index += threads)
        {
            const int next = first + index;
            elements[kept + index] = next < Problem::size ? Rows::element(row, next) : Element::behindAll();
        }
        // Only the new half is not in order; sorted backwards, it makes the whole a bitonic sequence.
        for (int size = 2; size <= kept; size *= 2)
            detail::bitonicStage<kept, threads>(elements, size, kept / 2);
        detail::bitonicStage<kept, threads>(elements, 2 * kept, 0);
    }
    __syncthreads(); // @sorted
    auto* const to = static_cast<typename Y::Type*>(y) + Y::offset(at.leading, at.at[0], at.at[1], at.at[2], 0);
    for (int place = thread; place < Problem::count; place += threads)
    {
        const int64 index = Rows::indexOf(elements[place]);
        store<typename Y::Type, 1>(to + place * Y::rowStride, {{static_cast<typename Y::Type>(index)}});
    }
}

} // namespace wpk
