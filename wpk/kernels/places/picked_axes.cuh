// Places along axes that indices name: from the numbers of an index tensor to elements.
#pragma once

#include <wpk/kernels/copies/vector.cuh>

namespace wpk
{

// An axis along which an index picks: its extent, and elements between its neighbours.
template <int64 Size, int64 Step>
struct PickedAxis
{
    static constexpr int64 size = Size, step = Step;
};

// The axes that the numbers of an index belong to, in their order.
template <class... Axes>
struct PickedAxes
{
    // Elements from the first place to the one that `index` names, whose numbers lie `indexStep` elements apart;
    // negative ones count from the end. -1 where one lies outside of its axis: nothing is there.
    template <class Index>
    static WPK_DEVICE int64 offset(const Index* index, int64 indexStep)
    {
        int64 total = 0;
        bool inside = true;
        (add<Axes>(index, indexStep, total, inside), ...);
        return inside ? total : -1;
    }

private:
    template <class Axis, class Index>
    static WPK_DEVICE void add(const Index*& index, int64 indexStep, int64& total, bool& inside)
    {
        int64 at = static_cast<int64>(load<Index, 1>(index)[0]);
        if (at < 0)
            at += Axis::size;
        inside = inside && at >= 0 && at < Axis::size; // @index_inside
        total += at * Axis::step;
        index += indexStep;
    }
};

} // namespace wpk
