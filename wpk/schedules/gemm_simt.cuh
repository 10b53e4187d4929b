// Matrix product in fp32 or fp64 on the ordinary cores, with batch and broadcasting; tensors of any floating
// type, products and sums in the numbers of the epilogue. Sums of products of bytes are exact.
//
// The grid is MatrixBlock's. Problem and Schedule are named by gemm_simt.py.
#pragma once

#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/epilogue/matrix_block.cuh>
#include <wpk/kernels/simt/tile_simt.cuh>
#include <wpk/kernels/sums/split_k.cuh>
#include <wpk/kernels/tiles/tile_gather.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void gemmSimt(
    Inputs<2 + Problem::Operands::count> inputs, int leading, void* y, const Partials& partials = {})
{
    using A = typename Problem::A;
    using B = typename Problem::B;
    using Number = NumberOf<typename Problem::Epilogue>;
    using Shape = SimtShape<Schedule, Number>;
    using SourceA = MatrixSource<A, Problem::a_m, Problem::a_k, Problem::k>;
    using SourceB = MatrixSource<B, Problem::b_n, Problem::b_k, Problem::b_depth>;
    using SinkA = SimtSink<Number, Shape::strideA, Shape::rowMajor, Problem::a_vector>;
    using SinkB = SimtSink<Number, Shape::strideB, false, Problem::b_vector>;
    using LoaderA = GatherLoader<SourceA, SinkA, Shape::blockM, Shape::blockK, Shape::threads, Problem::a_vector,
        Problem::a_vector == 1>;
    using LoaderB = GatherLoader<SourceB, SinkB, Shape::blockN, Shape::blockK, Shape::threads, Problem::b_vector,
        Problem::b_vector == 1>;
    WPK_SHARED(unsigned char, shared);
    static_assert(Schedule::shared_bytes == Shape::sharedBytes, "Python and C++ count the same shared memory");

    const MatrixBlock<Problem, Shape> block(inputs, leading);
    const SplitRange<Schedule::split, ceilDivide(Problem::k, Shape::blockK)> range;
    const int firstDepth = range.first * Shape::blockK;
    const auto window = block.window(inputs.at + 2, y);
    prefetchTileConstants<Problem, Shape::blockM, Shape::blockN, Shape::threads>(window);
    LoaderA loaderA({block.a, block.m}, block.firstRow, firstDepth);
    LoaderB loaderB({block.b, Problem::n}, block.firstColumn, firstDepth);

    const SimtThread<Shape> thread;
    SimtSum<A, B, Number> acc[Shape::threadM][Shape::threadN] = {};
    // @constant_b
    multiplySimtTiles<Shape, Problem::b_constant>(acc, thread, shared, loaderA, loaderB, range.count);
    if (!range.template sum<Shape::threads>(acc, shared, partials))
        return;
    storeSimtTile<Problem, Shape>(acc, thread, window);
}

} // namespace wpk
