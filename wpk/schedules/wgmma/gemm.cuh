// Matrix product by warpgroups, with batch and broadcasting (sm_90a). a lies along the reduction, b along it or
// across, along its columns.
//
// The grid is MatrixBlock's; or, of one matrix, blocks that stay (wgmma_persistent.cuh). Problem and Schedule are named
// by gemm_wgmma.py; maps: a's and b's, each (k, m or n, middle, outer), of a b that lies across (n, k, middle, outer).
#pragma once

#include <wpk/kernels/matrix_block.cuh>
#include <wpk/kernels/wgmma/persistent.cuh>

namespace wpk
{

template <class Problem, class Shape>
class GemmWgmmaTiles
{
    using P = Problem;

public:
    static constexpr bool kConstantB = P::b_constant;

    WPK_DEVICE GemmWgmmaTiles(const TensorMaps<2>& maps, const MatrixRows& rows, int firstRow, int firstColumn)
        : a_(maps.at[0]),
          b_(maps.at[1]),
          partA_(tilePart<Shape::partsA>()),
          partB_(tilePart<Shape::partsB>()),
          firstRow_(firstRow + partA_ * Shape::partRowsA),
          firstColumn_(firstColumn),
          outer_(rows.outer),
          middle_(rows.middle)
    {
    }

    WPK_DEVICE void prefetch() const
    {
        prefetchTensorMap(a_);
        prefetchTensorMap(b_);
    }

    // What is broadcast has one matrix along that dimension.
    WPK_DEVICE void copyA(SharedAddress target, SharedAddress barrier, int step) const
    {
        WPK_UNROLL
        for (int box = 0; box < Shape::boxes; ++box)
            copyTilePart<Shape::partsA>(target + box * Shape::boxBytesA + partA_ * (Shape::boxBytesA / Shape::partsA),
                a_, barrier,
                {step * Shape::blockK + box * Shape::kBoxDepth, firstRow_, P::a_middle == 0 ? 0 : middle_,
                    P::a_outer == 0 ? 0 : outer_});
    }

    WPK_DEVICE void copyB(SharedAddress target, SharedAddress barrier, int step) const
    {
        const int depth = step * Shape::blockK, part = partB_ * Shape::partRowsB;
        const int middle = P::b_middle == 0 ? 0 : middle_, outer = P::b_outer == 0 ? 0 : outer_;
        WPK_UNROLL
        for (int box = 0; box < Shape::boxesB; ++box)
        {
            const SharedAddress to = target + box * Shape::boxBytesB + partB_ * (Shape::boxBytesB / Shape::partsB);
            const int further = box * Shape::kBoxDepth;
            if constexpr (Shape::majorB == Major::k)
            {
                copyTilePart<Shape::partsB>(to, b_, barrier, {depth + further, firstColumn_ + part, middle, outer});
            }
            else
            {
                copyTilePart<Shape::partsB>(to, b_, barrier, {firstColumn_ + further, depth + part, middle, outer});
            }
        }
    }

private:
    const TensorMap *a_, *b_;
    int partA_, partB_; // that this block asks for
    int firstRow_, firstColumn_, outer_, middle_;
};

template <class Problem, class Schedule>
WPK_DEVICE void gemmWgmma(Inputs<2 + Problem::Operands::count> inputs, int leading, const TensorMaps<2>& maps, void* y,
    const Partials& partials = {})
{
    using Shape =
        WgmmaShape<typename Problem::Multiply, Schedule, Problem::k, Problem::b_across ? Major::mn : Major::k>;
    WPK_SHARED(unsigned char, shared);

    constexpr int kSteps = ceilDivide(Problem::k, Shape::blockK);
    using Tiles = GemmWgmmaTiles<Problem, Shape>;
    constexpr int kStored = Problem::n + Problem::y_padding;
    static_assert(
        Shape::stages == 2 || Schedule::persistent != 0 || Shape::stages <= ceilDivide(kSteps, Schedule::split),
        "no more stages than a part has steps");
    if constexpr (Schedule::persistent != 0)
    {
        const MatrixRows rows{0, 0}; // there is one matrix
        const auto tilesAt = [&](int firstRow, int firstColumn)
        {
            return Tiles(maps, rows, firstRow, firstColumn);
        };
        const int rowLimit = static_cast<int>(dimension<typename Problem::M>(leading));
        computeWgmmaTiles<Problem, Shape, kSteps, kStored>(
            shared, tilesAt, rows, inputs.at + 2, y, rowLimit, Problem::n);
    }
    else
    {
        MatrixBlock<Problem, Shape> block(inputs, leading);
        if constexpr (Shape::partsB > 1)
        {
            // There is one matrix; the last block may have none of its rows.
            block.rows = {0, 0};
            block.firstRow = static_cast<int>(blockIdx.x) * Shape::blockM;
        }
        const SplitRange<Schedule::split, kSteps> range;
        const Tiles tiles(maps, block.rows, block.firstRow, block.firstColumn);
        computeWgmmaTile<Problem, Shape>(shared, range, tiles, partials, block.rows, inputs.at + 2, y, block.firstRow,
            block.m, block.firstColumn, Problem::n, kStored);
    }
}

} // namespace wpk
