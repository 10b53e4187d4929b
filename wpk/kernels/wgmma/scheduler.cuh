// Which tiles a persistent block computes.
#pragma once

#include <wpk/kernels/barriers/cluster.cuh>
#include <wpk/kernels/epilogue/output_window.cuh>
#include <wpk/kernels/portable.cuh>

namespace wpk
{

// Every gridDim.x-th tile of the output, counted along the columns first. Blocks that work at the same time then share
// rows of A, which come from memory once. With multicast the blocks of a cluster have neighbouring tiles, which are
// counted together; the last ones may lie outside of the output.
template <class Shape>
class PersistentTileScheduler
{
public:
    template <class Rows>
    WPK_DEVICE explicit PersistentTileScheduler(const OutputWindow<Rows>& output)
        : across_(ceilDivide(output.storedColumns, Shape::blockN * Shape::multicastA)),
          tile_(static_cast<int>(blockIdx.x) / Shape::multicast),
          end_(ceilDivide(output.rowEnd, Shape::blockM * Shape::multicastB) * across_), // @tiles_counted
          neighbour_(Shape::multicast == 1 ? 0 : clusterRank())                         // @neighbour_told
    {
    }

    WPK_DEVICE bool isDone() const
    {
        return tile_ >= end_;
    }
    WPK_DEVICE void advance()
    {
        tile_ += static_cast<int>(gridDim.x) / Shape::multicast; // @next_tile
    }
    // The tile's window of the output.
    template <class Rows>
    WPK_DEVICE OutputWindow<Rows> window(const OutputWindow<Rows>& output) const
    {
        const int row = tile_ / across_ * Shape::multicastB + (Shape::multicastB == 1 ? 0 : neighbour_);
        const int column = tile_ % across_ * Shape::multicastA + (Shape::multicastA == 1 ? 0 : neighbour_);
        return output.at(row * Shape::blockM, column * Shape::blockN); // @tile_placed
    }

private:
    int across_, tile_, end_, neighbour_;
};

} // namespace wpk
