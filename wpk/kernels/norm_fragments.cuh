// The rows of A that a product of warps normalises behind it (gemm_mma): their moments are taken from the fragments
// that the warps multiply.
#pragma once

#include <wpk/kernels/row_norm.cuh>
#include <wpk/kernels/warp.cuh>

namespace wpk
{

// A warp's rows that are normalised behind their products (row_norm.cuh). Warps side by side have the same rows, and
// look at their steps in turns.
template <class Problem, class Shape>
class NormedFragments
{
    static constexpr bool isWhole = Problem::k % Shape::blockK == 0;

public:
    // Those of a step of the reduction; all lanes call it, one step after the other.
    WPK_DEVICE void look(const uint32 (&fragments)[Shape::tilesM][4], int step)
    {
        if (step == 0)
        {
            WPK_UNROLL
            for (int i = 0; i < Shape::tilesM; ++i)
                moments_[i].begin(fragments[i]);
        }
        if (step % Shape::warpsN != warpIndex() % Shape::warpsN) // @steps_in_turns
            return;
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
            moments_[i].template add<isWhole>(fragments[i], step * 16);
    }

    // The products of a block whose tile begins with `window`. The warps' sums meet in `shared`; all threads of the
    // block call it, before and behind which nobody else touches that.
    template <class Rows>
    WPK_DEVICE void normalise(
        float (&acc)[Shape::tilesM][Shape::tilesN][4], unsigned char* shared, const OutputWindow<Rows>& window) const
    {
        static_assert(Shape::threads / kWarpSize * kFloats * 4 <= Shape::sharedBytes, "the sums of all warps fit");
        ColumnSums<Problem, Shape::tilesN> sums;
        sums.load(window.from(0, warpIndex() % Shape::warpsN * Shape::warpN));
        float* const all = reinterpret_cast<float*>(shared);
        if constexpr (Shape::warpsN > 1)
        {
            write(all + warpIndex() * kFloats);
            __syncthreads(); // @sums_there
        }
        RowScale rows[Shape::tilesM][2];
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
        {
            WPK_UNROLL
            for (int row = 0; row < 2; ++row)
                rows[i][row] = moments_[i].scale(row, sumsOf(i, row, all), asFloat(Problem::row_epsilon));
        }
        if (Shape::warpsN > 1)
            __syncthreads(); // they have been read
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
            normaliseProducts<Problem>(acc[i], rows[i], sums);
    }

private:
    static constexpr int kFloats = Shape::tilesM * 16 * 2; // of a warp: sums of its rows, and of their squares

    // Where those of a lane's row are.
    static WPK_DEVICE int placeOf(int tile, int row)
    {
        return 2 * (tile * 16 + row * 8 + laneIndex() / 4);
    }
    WPK_DEVICE void write(float* own) const
    {
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
        {
            WPK_UNROLL
            for (int row = 0; row < 2; ++row)
            {
                const Vector<float, 2> sums = moments_[i].sums(row);
                if (laneIndex() % 4 == 0)
                    store<float, 2>(own + placeOf(i, row), sums);
            }
        }
    }
    // The sums of a row over all steps.
    WPK_DEVICE Vector<float, 2> sumsOf(int tile, int row, const float* all) const
    {
        if constexpr (Shape::warpsN == 1)
        {
            return moments_[tile].sums(row);
        }
        else
        {
            const int first = warpIndex() / Shape::warpsN * Shape::warpsN; // @warps_side_by_side
            Vector<float, 2> total = zeroVector<float, 2>();
            WPK_UNROLL
            for (int warp = 0; warp < Shape::warpsN; ++warp)
            {
                const auto part = load<float, 2>(all + (first + warp) * kFloats + placeOf(tile, row));
                total[0] += part[0];
                total[1] += part[1];
            }
            return total;
        }
    }

    RowMoments<typename Problem::Multiply, Problem::row_is_centred, Problem::k> moments_[Shape::tilesM];
};

} // namespace wpk
