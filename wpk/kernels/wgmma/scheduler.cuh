// Which tiles a persistent block computes.
#pragma once

#include <wpk/kernels/output_window.cuh>
#include <wpk/kernels/portable.cuh>

namespace wpk
{

// Every gridDim.x-th tile of the output, counted along the columns first. Blocks that work at the same time then share
// rows of A, which come from memory once.
template <class Shape>
class PersistentTileScheduler
{
public:
    template <class Rows>
    WPK_DEVICE explicit PersistentTileScheduler(const OutputWindow<Rows>& output)
        : across_(ceilDivide(output.storedColumns, Shape::blockN)),
          tile_(static_cast<int>(blockIdx.x)),
          end_(ceilDivide(output.rowEnd, Shape::blockM) * across_) // @tiles_counted
    {
    }

    WPK_DEVICE bool isDone() const
    {
        return tile_ >= end_;
    }
    WPK_DEVICE void advance()
    {
        tile_ += static_cast<int>(gridDim.x); // @next_tile
    }
    // The tile's window of the output.
    template <class Rows>
    WPK_DEVICE OutputWindow<Rows> window(const OutputWindow<Rows>& output) const
    {
        return output.at(tile_ / across_ * Shape::blockM, tile_ % across_ * Shape::blockN); // @tile_placed
    }

private:
    int across_, tile_, end_;
};

} // namespace wpk
