// From a thread's number to its place in a domain: division by constants, 64 bits only where needed.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// A thread's item in a domain of n x Extents...: n is known at run time only.
//
// Wide: whether the number of all items may reach 2^31; the items of one leading index never do.
template <bool Wide, int... Extents>
struct Domain
{
    static constexpr int rank = sizeof...(Extents);
    static constexpr int64 perLeading = (static_cast<int64>(Extents) * ... * 1);
    static_assert(perLeading < (int64(1) << 31), "items of one leading index are counted in 32 bits");

    // Items of the domain in all.
    static WPK_DEVICE int64 items(int n)
    {
        return n * perLeading;
    }

    int leading;
    int at[rank > 0 ? rank : 1];

    // The place of item `index` < items(n), the last axis fastest.
    explicit WPK_DEVICE Domain(int64 index)
    {
        uint32 rest;
        if constexpr (Wide)
        {
            leading = static_cast<int>(index / perLeading);
            rest = static_cast<uint32>(index - leading * perLeading);
        }
        else
        {
            const uint32 narrow = static_cast<uint32>(index);
            leading = static_cast<int>(narrow / static_cast<uint32>(perLeading));
            rest = narrow % static_cast<uint32>(perLeading);
        }
        constexpr uint32 extents[] = {Extents..., 1};
        WPK_UNROLL
        for (int axis = rank - 1; axis >= 0; --axis)
        {
            at[axis] = static_cast<int>(rest % extents[axis]);
            rest /= extents[axis];
        }
    }
};

// A thread's item in a domain of images: chunk `chunk` of the channels at (n, p, q).
//
// ChannelsFastest: neighbouring items lie along the channels; otherwise along q.
template <bool Wide, bool ChannelsFastest, int P, int Q, int Chunks>
struct PixelDomain
{
    using Order = Domain<Wide, ChannelsFastest ? P : Chunks, ChannelsFastest ? Q : P, ChannelsFastest ? Chunks : Q>;
    int n, p, q, chunk;

    static WPK_DEVICE int64 items(int n)
    {
        return Order::items(n);
    }

    explicit WPK_DEVICE PixelDomain(int64 index)
    {
        const Order order(index);
        n = order.leading;
        p = order.at[ChannelsFastest ? 0 : 1];
        q = order.at[ChannelsFastest ? 1 : 2];
        chunk = order.at[ChannelsFastest ? 2 : 0];
    }
};

// A part of V elements, number `chunk`, of a row of Extent elements that Padding zeros follow.
template <int Extent, int Padding, int V>
struct RowPart
{
    static constexpr int chunks = ceilDivide(Extent + Padding, V);
    int start;
    int valid; // elements that lie in the row; none where negative or zero
    int room;  // elements that lie in the row or its padding

    explicit WPK_DEVICE RowPart(int chunk)
        : start(chunk * V),
          valid(Extent % V == 0 && Padding == 0 ? V : minOf(V, Extent - chunk * V)),
          room((Extent + Padding) % V == 0 ? V : minOf(V, Extent + Padding - chunk * V))
    {
    }
};

// The number of this thread's first item, where every block takes PerBlock items in a row.
template <int PerBlock>
WPK_DEVICE int64 firstItem()
{
    return static_cast<int64>(blockIdx.x) * PerBlock + static_cast<int64>(threadIdx.x);
}

} // namespace wpk
