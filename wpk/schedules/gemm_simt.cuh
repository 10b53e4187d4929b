// Matrix product in fp32 on the ordinary cores, with batch and broadcasting; tensors of any floating
// type, products and sums in fp32.
//
// Grid: x counts tiles of rows, then the batch (outer, middle); y tiles of columns. Problem and Schedule are
// named by gemm_simt.py.
#pragma once

#include <wpk/kernels/dims.cuh>
#include <wpk/kernels/tile_gather.cuh>
#include <wpk/kernels/tile_simt.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void gemmSimt(Inputs<2 + Problem::Operands::count> inputs, int leading, void* y)
{
    using A = typename Problem::A;
    using B = typename Problem::B;
    using Shape = SimtShape<Schedule>;
    using SourceA = MatrixSource<A, Problem::a_m, Problem::a_k, Problem::k>;
    using SourceB = MatrixSource<B, Problem::b_n, Problem::b_k, Problem::b_depth>;
    using SinkA = SimtSink<Shape::strideA, Shape::rowMajor, Problem::a_vector>;
    using SinkB = SimtSink<Shape::strideB, false, Problem::b_vector>;
    using LoaderA = GatherLoader<SourceA, SinkA, Shape::blockM, Shape::blockK, Shape::threads, Problem::a_vector,
        Problem::a_vector == 1>;
    using LoaderB = GatherLoader<SourceB, SinkB, Shape::blockN, Shape::blockK, Shape::threads, Problem::b_vector,
        Problem::b_vector == 1>;
    WPK_SHARED(unsigned char, shared);

    const auto m = dimension<typename Problem::M>(leading);
    const int rowTiles = ceilDivide(static_cast<int>(m), Shape::blockM);
    const int batch = static_cast<int>(blockIdx.x) / rowTiles;
    const int firstRow = static_cast<int>(blockIdx.x) % rowTiles * Shape::blockM;
    const int firstColumn = static_cast<int>(blockIdx.y) * Shape::blockN;
    const MatrixRows rows{batch / Problem::batch_middle, batch % Problem::batch_middle};
    const A* const matrixA =
        static_cast<const A*>(inputs.at[0]) + rows.outer * Problem::a_outer + rows.middle * Problem::a_middle;
    const B* const matrixB =
        static_cast<const B*>(inputs.at[1]) + rows.outer * Problem::b_outer + rows.middle * Problem::b_middle;
    LoaderA loaderA({matrixA, m}, firstRow);
    LoaderB loaderB({matrixB, Problem::n}, firstColumn);

    const SimtThread<Shape> thread;
    float acc[Shape::threadM][Shape::threadN] = {};
    multiplySimtTiles<Shape>(acc, thread, shared, loaderA, loaderB, ceilDivide(Problem::k, Shape::blockK));
    storeSimtTile<Problem, Shape>(
        acc, thread, rows, inputs.at + 2, y, firstRow, m, firstColumn, Problem::n, Problem::n + Problem::y_padding);
}

} // namespace wpk
