// The rows of A that consumer warpgroups normalise behind their products (sm_90a): their moments are taken from the
// stages in shared memory while the products of the same stage run.
#pragma once

#include <wpk/kernels/mma.cuh>
#include <wpk/kernels/row_norm.cuh>
#include <wpk/kernels/tile_shared.cuh>

namespace wpk
{

// Problem: a product whose rows are normalised. A warp looks at 16 of each 64 rows of its warpgroup.
template <class Problem, class Shape>
class NormedRows
{
    using T = typename Problem::Multiply;
    static constexpr int kProducts = Shape::kGroupRows / Shape::kProductRows;
    static constexpr int kProductBytes = Shape::kProductRows * Shape::kBoxRowBytes;
    static constexpr bool isWhole = Problem::k % Shape::blockK == 0;

public:
    // The rows of a step, which lie at `tile`; all lanes call it, one step after the other.
    WPK_DEVICE void look(SharedAddress tile, int step)
    {
        const int row = warpIndex() % Shape::kGroupWarps * 16 + laneIndex() % 16, chunk = laneIndex() / 16;
        WPK_UNROLL
        for (int product = 0; product < kProducts; ++product)
        {
            WPK_UNROLL
            for (int box = 0; box < Shape::boxes; ++box)
            {
                const SharedAddress rows = tile + box * Shape::boxBytesA + product * kProductBytes; // @rows_of_norm
                WPK_UNROLL
                for (int slice = 0; slice < Shape::slices; ++slice)
                {
                    uint32 fragment[4];
                    loadMatrix4(fragment, rows + SwizzledTile<128>::offset(row, slice * 2 + chunk));
                    if (box == 0 && slice == 0 && step == 0)
                        moments_[product].begin(fragment);
                    const int first = step * Shape::blockK + box * Shape::kBoxDepth + slice * 16;
                    moments_[product].template add<isWhole>(fragment, first);
                }
            }
        }
        __syncwarp(); // @rows_seen: whoever releases the stage does so for all lanes
    }

    // A warpgroup's products, all steps of which it has seen.
    template <int Count, class Rows>
    WPK_DEVICE void normalise(float (&acc)[Count], const OutputWindow<Rows>& window) const
    {
        auto& products = reinterpret_cast<float(&)[kProducts][Shape::blockN / 8][4]>(acc);
        WPK_UNROLL
        for (int product = 0; product < kProducts; ++product)
            normaliseProducts<Problem>(products[product], moments_[product], window);
    }

private:
    RowMoments<T, Problem::row_is_centred, Problem::k> moments_[kProducts];
};

// As the problem says.
template <class Problem, class Shape>
using RowsOf = Select<kNormsRows<Problem>, NormedRows<Problem, Shape>, RawRows>;

} // namespace wpk
