// The rows of A that consumer warpgroups normalise behind their products (sm_90a): their moments are taken from the
// stages in shared memory while the products of the same stage run.
#pragma once

#include <wpk/kernels/mma.cuh>
#include <wpk/kernels/row_norm.cuh>
#include <wpk/kernels/tile_shared.cuh>

namespace wpk
{

// Of a tile at `window` of a problem whose rows are normalised. A warp looks at 16 of each 64 rows of its warpgroup.
template <class Problem, class Shape, class Window>
class NormedRows
{
    using T = typename Problem::Multiply;
    static constexpr int kProducts = Shape::kGroupRows / Shape::kProductRows;
    static constexpr int kProductBytes = Shape::kProductRows * Shape::kBoxRowBytes;
    static constexpr bool isWhole = Problem::k % Shape::blockK == 0;

public:
    WPK_DEVICE explicit NormedRows(const Window& window) : window_(window) {}

    // The rows of a step, which lie at `tile`; all lanes call it, one step after the other, when they have asked for
    // the step's products.
    WPK_DEVICE void look(SharedAddress tile, int step)
    {
        __syncwarp(); // an order of instructions: products are asked for before the rows are read
        const int row = warpIndex() % Shape::kGroupWarps * 16 + laneIndex() % 16; // @rows_looked
        const int chunk = laneIndex() / 16;
        WPK_UNROLL
        for (int product = 0; product < kProducts; ++product)
        {
            WPK_UNROLL
            for (int box = 0; box < Shape::boxes; ++box)
            {
                const SharedAddress rows = tile + box * Shape::boxBytesA + product * kProductBytes; // @rows_of_norm
                uint32 fragments[Shape::slices][4];                                                 // under way at once
                WPK_UNROLL
                for (int slice = 0; slice < Shape::slices; ++slice)
                    loadMatrix4(fragments[slice], rows + SwizzledTile<128>::offset(row, slice * 2 + chunk));
                if (box == 0 && step == 0)
                    moments_[product].begin(fragments[0]);
                WPK_UNROLL
                for (int slice = 0; slice < Shape::slices; ++slice)
                {
                    const int first = step * Shape::blockK + box * Shape::kBoxDepth + slice * 16;
                    moments_[product].template add<isWhole>(fragments[slice], first);
                }
            }
        }
        __syncwarp(); // whoever releases the stage does so for all lanes
    }

    // While the last products run, behind all steps: what they will be normalised by.
    WPK_DEVICE void finish()
    {
        sums_.load(window_);
        WPK_UNROLL
        for (int product = 0; product < kProducts; ++product)
            moments_[product].finish(rows_[product], asFloat(Problem::row_epsilon));
    }

    WPK_DEVICE void normalise(float (&acc)[Shape::accumulators]) const
    {
        auto& products = reinterpret_cast<float(&)[kProducts][kTiles][4]>(acc);
        WPK_UNROLL
        for (int product = 0; product < kProducts; ++product)
            sums_.apply(products[product], rows_[product]);
    }

private:
    static constexpr int kTiles = Shape::blockN / 8;

    Window window_;
    RowMoments<T, Problem::row_is_centred, Problem::k> moments_[kProducts];
    RowScale rows_[kProducts][2];
    ColumnSums<Problem, kTiles> sums_;
};

// As the problem says.
template <class Problem, class Shape, class Window>
using RowsOf = Select<kNormsRows<Problem>, NormedRows<Problem, Shape, Window>, RawRows>;

} // namespace wpk
