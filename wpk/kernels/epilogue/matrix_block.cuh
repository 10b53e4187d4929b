// A block's part of a batch of matrix products: which matrices it reads, which tile it computes.
//
// Grid: x counts tiles of rows, then the batch (outer, middle); y tiles of columns; z parts of the reduction
// (split_k.cuh).
#pragma once

#include <wpk/kernels/epilogue/epilogue.cuh>
#include <wpk/kernels/operands/operands.cuh>
#include <wpk/kernels/places/dims.cuh>

namespace wpk
{

template <class Problem, class Shape>
struct MatrixBlock
{
    using A = typename Problem::A;
    using B = typename Problem::B;

    int m; // rows of a matrix
    int firstRow, firstColumn;
    MatrixRows rows;
    const A* a;
    const B* b;

    template <int N>
    WPK_DEVICE MatrixBlock(const Inputs<N>& inputs, int leading)
        : m(static_cast<int>(dimension<typename Problem::M>(leading))),
          firstColumn(static_cast<int>(blockIdx.y) * Shape::blockN)
    {
        const int rowTiles = ceilDivide(m, Shape::blockM);
        const int batch = static_cast<int>(blockIdx.x) / rowTiles;
        firstRow = static_cast<int>(blockIdx.x) % rowTiles * Shape::blockM;
        rows = {batch / Problem::batch_middle, batch % Problem::batch_middle};
        a = static_cast<const A*>(inputs.at[0]) + rows.outer * Problem::a_outer + rows.middle * Problem::a_middle;
        b = static_cast<const B*>(inputs.at[1]) + rows.outer * Problem::b_outer + rows.middle * Problem::b_middle;
    }

    // Where the tile is stored.
    WPK_DEVICE OutputWindow<MatrixRows> window(const void* const* operands, const Outputs& to) const
    {
        constexpr int kStored = Problem::n + Problem::y_padding;
        return {rows, operands, to.y, m, Problem::n, kStored, firstRow, firstColumn, to.moments};
    }
};

} // namespace wpk
