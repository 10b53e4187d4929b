// Tiles of rows that a block of a persistent kernel computes one after another, all of their columns.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// Every gridDim.x-th tile of Shape::rows.
template <class Shape>
struct BlockTiles
{
    int tile, end;

    WPK_DEVICE explicit BlockTiles(int m)
        : tile(static_cast<int>(blockIdx.x)), end(ceilDivide(m, Shape::rows)) // @tiles_counted
    {
    }
    WPK_DEVICE bool isDone() const
    {
        return tile >= end;
    }
    WPK_DEVICE void advance()
    {
        tile += static_cast<int>(gridDim.x); // @next_tile
    }
    WPK_DEVICE int firstRow() const
    {
        return tile * Shape::rows;
    }
};

} // namespace wpk
