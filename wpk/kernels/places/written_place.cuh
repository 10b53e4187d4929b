// Which element of a row an update goes to.
#pragma once

#include <wpk/kernels/places/picked_axes.cuh>

namespace wpk
{

// How the places of updates that share an index follow each other.
enum class Advance
{
    none,
    linear,
    circular
};

// The place of an update, which may lie behind the one that its index names; -1 where that lies outside.
//
// Problem: Picked: the axes whose places make the size; indexStep: elements between an index's numbers; advance; size.
template <class Problem, class Index>
WPK_DEVICE int64 writtenPlace(const Index* index, int update)
{
    const int64 place = Problem::Picked::offset(index, Problem::indexStep);
    if constexpr (Problem::advance == Advance::none)
        return place;
    else if constexpr (Problem::advance == Advance::linear)
        return place < 0 ? place : place + update;
    else
        return place < 0 ? place : (place + update) % Problem::size;
}

} // namespace wpk
