// TMA multicast (sm_90a): blocks of a cluster that need the same tile. Each asks for one part of it, for all of them.
#pragma once

#include <wpk/kernels/barriers/cluster.cuh>
#include <wpk/kernels/copies/tma.cuh>

namespace wpk
{

// The Blocks that a tile is multicast to. Their ranks follow each other: multicast runs along a cluster's x and y axes,
// and the parts of split-K, each of which is a group of its own, along z.
template <int Blocks, int Parts = 1>
struct MulticastGroup
{
    static constexpr int blocks = Blocks;

    // The rank of the group's first block in the cluster.
    static WPK_DEVICE int first()
    {
        return Blocks == 1 || Parts == 1 ? 0 : clusterRank() / Blocks * Blocks; // @group_chosen
    }
    // This block's number in its group.
    static WPK_DEVICE int member()
    {
        return Blocks == 1 ? 0 : Parts == 1 ? clusterRank() : clusterRank() % Blocks;
    }
};

// A box of a tile that is multicast to Blocks blocks of a group, each of which asks for one part of its Rows.
template <class Group, int Blocks, int Rows>
struct MulticastBox
{
    static constexpr int kRows = Rows / Blocks;
    static_assert(Blocks == 1 || Blocks == Group::blocks, "a group shares one of the operands");
    static_assert(Blocks == 1 || kRows % 8 == 0, "parts are whole patterns of the swizzle, 8 rows of 128 bytes");

    int part = Blocks == 1 ? 0 : Group::member(); // @part_chosen: that this block asks for
    uint16 targets =
        static_cast<uint16>(((1 << Blocks) - 1) << Group::first()); // @targets_chosen: blocks of the cluster

    WPK_DEVICE int firstRow() const
    {
        return part * kRows;
    }

    // Where the part lies in a box that begins at `box`.
    WPK_DEVICE SharedAddress at(SharedAddress box) const
    {
        return box + part * (kRows * 128); // @part_placed
    }

    template <int Rank>
    WPK_DEVICE void copy(
        SharedAddress box, const TensorMap* map, SharedAddress barrier, const int (&coordinates)[Rank]) const
    {
        if constexpr (Blocks == 1)
        {
            copyTensor(at(box), map, barrier, coordinates);
        }
        else
        {
            copyTensorToBlocks(at(box), map, barrier, coordinates, targets); // @multicast
        }
    }

    template <int Rank>
    WPK_DEVICE void copyIm2col(SharedAddress box, const TensorMap* map, SharedAddress barrier,
        const int (&coordinates)[Rank], const uint16 (&taps)[Rank - 2]) const
    {
        if constexpr (Blocks == 1)
        {
            copyPixels(at(box), map, barrier, coordinates, taps);
        }
        else
        {
            copyPixelsToBlocks(at(box), map, barrier, coordinates, taps, targets); // @multicast
        }
    }
};

} // namespace wpk
