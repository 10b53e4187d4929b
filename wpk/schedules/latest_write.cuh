// Updates written where an index tensor says, of which the last for a place stays. A block owns Schedule::places places
// of a row, and looks through the row's updates once: the number of the latest for each place is a maximum in shared
// memory, whichever thread comes first. Then every element is moved once, from there or from the data.
//
// Problem: Data and Y over (leading, other, size, inner), Updates over (leading, other, count, inner), Index over the
// same without inner, and indexStep elements between its numbers; Picked: the axes whose places make the size; other;
// size; count; inner; advance; rowPadding: zeros that follow y's rows.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/places/written_place.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void latestWrite(Inputs<3> inputs, int n, void* y)
{
    using Data = typename Problem::Data;
    using Index = typename Problem::Index;
    using Updates = typename Problem::Updates;
    using Y = typename Problem::Y;
    using T = typename Data::Type;
    constexpr int V = Schedule::vector, places = Schedule::places, threads = Schedule::threads;
    using Place = Domain<Problem::wide, Problem::other, ceilDivide(Problem::size, places)>;
    using Row = RowPart<Problem::inner, Problem::rowPadding, V>;
    __shared__ int latest[places];
    const int thread = static_cast<int>(threadIdx.x);
    const Place at(static_cast<int64>(blockIdx.x));
    const int first = at.at[1] * places;
    for (int place = thread; place < places; place += threads)
        latest[place] = -1;
    startIfEarly<Schedule>(); // @previous_awaited
    __syncthreads();          // @none_written
    for (int update = thread; update < Problem::count; update += threads)
    {
        const typename Index::Type* const index =
            static_cast<const typename Index::Type*>(inputs.at[1]) + Index::offset(at.leading, at.at[0], update, 0);
        const int64 place = writtenPlace<Problem>(index, update) - first; // @part_begins
        if (place >= 0 && place < places)
            atomicMax(latest + static_cast<int>(place), update); // @latest_kept
    }
    __syncthreads(); // @all_seen
    const int valid = minOf(places, Problem::size - first);
    for (int item = thread; item < valid * Row::chunks; item += threads)
    {
        const int place = item / Row::chunks, update = latest[place];
        const Row part(item % Row::chunks);
        T row[V] = {};
        if (part.valid > 0)
        {
            if (update >= 0)
                loadRow<Updates, V>(
                    inputs.at[2], Updates::offset(at.leading, at.at[0], update, part.start), part.valid, row);
            else
                loadRow<Data, V>(
                    inputs.at[0], Data::offset(at.leading, at.at[0], first + place, part.start), part.valid, row);
        }
        storeRow<Y, V>(y, Y::offset(at.leading, at.at[0], first + place, part.start), part.valid, part.room, row);
    }
}

} // namespace wpk
