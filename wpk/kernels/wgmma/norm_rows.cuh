// The rows of A that consumer warpgroups normalise behind their products (sm_90a): their moments are taken from the
// stages in shared memory, which are read before the products of the same stage and added while these run.
#pragma once

#include <wpk/kernels/mma/mma.cuh>
#include <wpk/kernels/mma/row_norm.cuh>
#include <wpk/kernels/tiles/tile_shared.cuh>

namespace wpk
{

// What the rows of a tile at `window` are normalised by, of each product of a warpgroup.
template <class Problem, class Shape, class Window>
class ScaledRows
{
public:
    // All sums of the products, or of this part of the reduction.
    WPK_DEVICE void normalise(float (&acc)[Shape::accumulators], int part) const
    {
        auto& products = reinterpret_cast<float(&)[kProducts][Shape::blockN / 8][4]>(acc);
        normaliseProducts<Problem>(products, rows_, window_, part);
    }
    // Or sums of a product one by one.
    WPK_DEVICE ScaledSums<Problem> scaled(int product) const
    {
        return {rows_[product]};
    }

protected:
    static constexpr int kProducts = Shape::kGroupRows / Shape::kProductRows;

    WPK_DEVICE explicit ScaledRows(const Window& window) : window_(window) {}

    Window window_;
    RowScale rows_[kProducts][2];
};

// Of a problem whose rows are normalised. A warp looks at 16 of each 64 rows of its warpgroup.
template <class Problem, class Shape, class Window>
class NormedRows : public ScaledRows<Problem, Shape, Window>
{
    using Scaled = ScaledRows<Problem, Shape, Window>;
    using T = typename Problem::Multiply;
    static constexpr int kProducts = Scaled::kProducts;
    static constexpr int kProductBytes = Shape::kProductRows * Shape::kBoxRowBytes;
    static constexpr bool isWhole = Problem::k % Shape::blockK == 0;

public:
    // Boxes of a step whose rows are brought at once, as registers allow.
    static constexpr int kTogether = kProducts == 1 && Shape::boxes % 2 == 0 ? 2 : 1;

    WPK_DEVICE explicit NormedRows(const Window& window) : Scaled(window) {}

    // The rows of the boxes of a step from `first` on, which lie at `tile`: all lanes call it before they ask for these
    // boxes' products, whose reading of shared memory would keep this one waiting.
    WPK_DEVICE void bring(SharedAddress tile, int first)
    {
        const int row = warpIndex() % Shape::kGroupWarps * 16 + laneIndex() % 16; // @rows_looked
        const int chunk = laneIndex() / 16;
        WPK_UNROLL
        for (int product = 0; product < kProducts; ++product)
        {
            WPK_UNROLL
            for (int box = 0; box < kTogether; ++box)
            {
                const SharedAddress rows =
                    tile + (first + box) * Shape::boxBytesA + product * kProductBytes; // @rows_of_norm
                WPK_UNROLL
                for (int slice = 0; slice < Shape::slices; ++slice)
                    loadMatrix4(
                        fragments_[product][box][slice], rows + SwizzledTile<128>::offset(row, slice * 2 + chunk));
            }
        }
    }

    // Adds what was brought, while the products run; all lanes call it, one step after the other.
    WPK_DEVICE void add(int step, int first)
    {
        __syncwarp(); // an order of instructions: products are asked for before moments are computed
        WPK_UNROLL
        for (int product = 0; product < kProducts; ++product)
        {
            if (first == 0 && step == 0)
                moments_[product].begin(fragments_[product][0][0]);
            WPK_UNROLL
            for (int box = 0; box < kTogether; ++box)
            {
                WPK_UNROLL
                for (int slice = 0; slice < Shape::slices; ++slice)
                {
                    const int element = step * Shape::blockK + (first + box) * Shape::kBoxDepth + slice * 16;
                    moments_[product].template add<isWhole>(fragments_[product][box][slice], element);
                }
            }
        }
        __syncwarp(); // whoever releases the stage does so for all lanes
    }

    // While the last products run, behind all steps: what they will be normalised by.
    WPK_DEVICE void finish()
    {
        WPK_UNROLL
        for (int product = 0; product < kProducts; ++product)
            moments_[product].finish(this->rows_[product], asFloat(Problem::row_epsilon));
    }

private:
    uint32 fragments_[kProducts][kTogether][Shape::slices][4];
    RowMoments<T, Problem::row_is_centred, Problem::k> moments_[kProducts];
};

// The same of rows whose moments a kernel in front has stored: nothing is looked at while products run.
template <class Problem, class Shape, class Window>
class RowsWithMoments : public ScaledRows<Problem, Shape, Window>
{
    using Scaled = ScaledRows<Problem, Shape, Window>;

public:
    static constexpr int kTogether = RawRows::kTogether;

    WPK_DEVICE explicit RowsWithMoments(const Window& window) : Scaled(window) {}

    template <class Tile>
    WPK_DEVICE void bring(const Tile&, int)
    {
    }
    WPK_DEVICE void add(int, int) {}

    // While the last products run; all lanes call it.
    WPK_DEVICE void finish()
    {
        const int group = Shape::pingpong ? 0 : warpIndex() / Shape::kGroupWarps;
        const Window& tile = this->window_;
        const int row = tile.firstRow + group * Shape::kProductRows + warpIndex() % Shape::kGroupWarps * 16;
        WPK_UNROLL
        for (int product = 0; product < Scaled::kProducts; ++product)
        {
            const int first = row + product * Shape::kProductRows + laneIndex() / 4; // @moments_of_product
            scaleByMoments<Problem>(this->rows_[product], tile, first);
        }
    }
};

// As the problem says.
template <class Problem, class Shape, class Window>
using RowsOf = Select<kTakesMoments<Problem>, RowsWithMoments<Problem, Shape, Window>,
    Select<kNormsRows<Problem>, NormedRows<Problem, Shape, Window>, RawRows>>;

} // namespace wpk
