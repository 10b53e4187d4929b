// Matrix product by warpgroups, with batch and broadcasting (sm_90a). a lies along the reduction, b along it or
// across, along its columns.
//
// The grid is MatrixBlock's; or, of one matrix, persistent blocks. Problem and Schedule are named by gemm.py; maps: a's
// and b's, each (k, m or n, middle, outer), of a b that lies across (n, k, middle, outer); and the residual's where it
// is in shared memory, (n, m, middle, outer).
#pragma once

#include <wpk/kernels/epilogue/matrix_block.cuh>
#include <wpk/kernels/wgmma/kernel.cuh>

namespace wpk
{

// Where a tile's boxes come from (producer.cuh). What is broadcast has one matrix along that dimension.
template <class Problem, class Shape>
class GemmLoader
{
    using P = Problem;

public:
    static constexpr bool kConstantB = P::b_constant;
    static constexpr int kSteps = ceilDivide(P::k, Shape::blockK);

    template <int Maps>
    WPK_DEVICE GemmLoader(const TensorMaps<Maps>& maps, const OutputWindow<MatrixRows>& tile)
        : a_(maps.at[0]),
          b_(maps.at[1]),
          firstRow_(tile.firstRow + boxA_.firstRow()),
          firstColumn_(tile.firstColumn),
          outer_(tile.rows.outer),
          middle_(tile.rows.middle)
    {
    }

    WPK_DEVICE void prefetch() const
    {
        prefetchTensorMap(a_);
        prefetchTensorMap(b_);
    }

    WPK_DEVICE void copyA(SharedAddress target, SharedAddress barrier, int step) const
    {
        const int depth = step * Shape::blockK;
        const int middle = P::a_middle == 0 ? 0 : middle_, outer = P::a_outer == 0 ? 0 : outer_;
        WPK_UNROLL
        for (int box = 0; box < Shape::boxes; ++box)
            boxA_.copy(target + box * Shape::boxBytesA, a_, barrier,
                {depth + box * Shape::kBoxDepth, firstRow_, middle, outer});
    }

    WPK_DEVICE void copyB(SharedAddress target, SharedAddress barrier, int step) const
    {
        const int depth = step * Shape::blockK, part = boxB_.firstRow();
        const int middle = P::b_middle == 0 ? 0 : middle_, outer = P::b_outer == 0 ? 0 : outer_;
        WPK_UNROLL
        for (int box = 0; box < Shape::boxesB; ++box)
        {
            const SharedAddress to = target + box * Shape::boxBytesB;
            const int further = box * Shape::kBoxDepth;
            if constexpr (Shape::majorB == Major::k)
            {
                boxB_.copy(to, b_, barrier, {depth + further, firstColumn_ + part, middle, outer});
            }
            else
            {
                boxB_.copy(to, b_, barrier, {firstColumn_ + further, depth + part, middle, outer});
            }
        }
    }

private:
    const TensorMap *a_, *b_;
    MulticastBox<typename Shape::Multicast, Shape::multicastA, Shape::boxRowsA> boxA_;
    MulticastBox<typename Shape::Multicast, Shape::multicastB, Shape::boxRowsB> boxB_;
    int firstRow_, firstColumn_, outer_, middle_;
};

template <class Problem, class Schedule>
WPK_DEVICE void gemmWgmma(Inputs<2 + Problem::Operands::count + kRowNormInputs<Problem>> inputs, int leading,
    const WgmmaMaps<Schedule>& maps, const Outputs& outputs, const Partials& partials = {})
{
    using Shape = WgmmaShape<typename Problem::Multiply, Schedule, Problem::k, kStoresByColumns<Problem>,
        Problem::b_across ? Major::mn : Major::k>;
    WPK_SHARED(unsigned char, shared);

    MatrixBlock<Problem, Shape> block(inputs, leading);
    if constexpr (Shape::persistent || Shape::multicastB > 1)
    {
        // There is one matrix; of blocks that B is multicast to the last ones may have none of its rows.
        block.rows = {0, 0};
        block.firstRow = Shape::persistent ? 0 : static_cast<int>(blockIdx.x) * Shape::blockM;
        block.firstColumn = Shape::persistent ? 0 : block.firstColumn;
    }
    computeWgmma<Problem, Schedule, Shape, GemmLoader<Problem, Shape>>(
        shared, maps, block.window(inputs.at + 2, outputs), partials);
}

} // namespace wpk
