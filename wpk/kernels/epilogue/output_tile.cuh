// A tile of Schedule::tile_p x tile_q output pixels of an image.
#pragma once

#include <wpk/kernels/places/dims.cuh>
#include <wpk/kernels/portable.cuh>

namespace wpk
{

// Its image, and its first row and column there.
template <class Problem, class Schedule>
struct OutputTile
{
    static constexpr int kTilesP = ceilDivide(Problem::p, Schedule::tile_p);
    static constexpr int kTilesQ = ceilDivide(Problem::q, Schedule::tile_q);
    static constexpr int kTiles = kTilesP * kTilesQ; // of an image

    OutputTile() = default; // of columns that are filled in later (tile_store.cuh)
    explicit WPK_DEVICE OutputTile(int index)
        : image(index / kTiles), p(index % kTiles / kTilesQ * Schedule::tile_p), q(index % kTilesQ * Schedule::tile_q)
    {
    }

    // As a map of rows (epilogue.cuh): row i of the block is pixel i of the tile. Where compilers take this sum apart,
    // they take apart the accesses there too.
    template <class Tensor>
    WPK_DEVICE int64 offset(int row) const
    {
        return computedHere(image * Tensor::outer + (p + row / Schedule::tile_q) * Tensor::middle
                            + (q + row % Schedule::tile_q) * Tensor::inner);
    }

    int image, p, q;
};

// Rows of a tile that reaches over the image's edge are not stored (tile_store.cuh).
template <class Problem, class Schedule>
WPK_DEVICE bool isRowStored(const OutputTile<Problem, Schedule>& tile, int row, int limit)
{
    return row < limit && tile.p + row / Schedule::tile_q < Problem::p && tile.q + row % Schedule::tile_q < Problem::q;
}

} // namespace wpk
