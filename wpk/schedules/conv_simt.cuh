// Convolution in fp32 on the ordinary cores as an implicit matrix product (see conv_mma.cuh); tensors of
// any floating type, products and sums in fp32.
//
// Grid: tiles of rows, tiles of columns, groups and the parts of each (split_k.cuh). Problem and Schedule
// are named by conv_simt.py.
#pragma once

#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/simt/tile_simt.cuh>
#include <wpk/kernels/sums/split_k.cuh>
#include <wpk/kernels/tiles/tile_gather.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void convSimt(
    Inputs<2 + Problem::Operands::count + kInputLimits<Problem>> inputs, int n, void* y, const Partials& partials = {})
{
    using X = typename Problem::X;
    using W = typename Problem::W;
    using Shape = SimtShape<Schedule, float>;
    constexpr int kVectorW = 4;
    static_assert(Problem::depth % kVectorW == 0, "packed filters are whole vectors");
    using SinkA = SimtSink<float, Shape::strideA, Shape::rowMajor, Problem::x_vector>;
    using SinkB = SimtSink<float, Shape::strideB, false, kVectorW>;
    using Filters = MatrixSource<W, Problem::depth, 1, Problem::depth>;
    const auto limits = inputLimits<Problem>(inputs);
    using LoaderA = GatherLoader<PixelSource<Problem>, SinkA, Shape::blockM, Shape::blockK, Shape::threads,
        Problem::x_vector, Problem::x_vector == 1, decltype(inputLimits<Problem>(inputs))>;
    using LoaderB = GatherLoader<Filters, SinkB, Shape::blockN, Shape::blockK, Shape::threads, kVectorW, false>;
    WPK_SHARED(unsigned char, shared);
    static_assert(Schedule::shared_bytes == Shape::sharedBytes, "Python and C++ count the same shared memory");

    constexpr int kReduction = Problem::filter_h * Problem::filter_w * Problem::tap;
    const SplitRange<Schedule::split, ceilDivide(kReduction, Shape::blockK)> range;
    const int group = range.outer;
    const int firstRow = static_cast<int>(blockIdx.x) * Shape::blockM;
    const int firstFilter = static_cast<int>(blockIdx.y) * Shape::blockN;
    const int rows = n * (Problem::p * Problem::q);
    const W* const filters =
        static_cast<const W*>(inputs.at[1]) + static_cast<int64>(group) * Problem::k * Problem::depth;
    const X* const input = static_cast<const X*>(inputs.at[0]) + group * (Problem::c * Problem::x_c);
    const int valid = (group + 1) * Problem::k;
    const int stored = group + 1 == Problem::groups ? valid + Problem::y_padding : valid;
    const OutputWindow output{PixelRows<Problem::p, Problem::q>{}, inputs.at + 2, y, rows, valid, stored};
    const auto window = output.from(firstRow, group * Problem::k + firstFilter);
    prefetchTileConstants<Problem, Shape::blockM, Shape::blockN, Shape::threads>(window);
    LoaderA loaderA({input, rows}, firstRow, range.first * Shape::blockK, limits);
    LoaderB loaderB({filters, Problem::k}, firstFilter, range.first * Shape::blockK);

    const SimtThread<Shape> thread;
    SimtSum<X, W, float> acc[Shape::threadM][Shape::threadN] = {};
    multiplySimtTiles<Shape, true>(acc, thread, shared, loaderA, loaderB, range.count);
    if (!range.template sum<Shape::threads>(acc, shared, partials))
        return;
    storeSimtTile<Problem, Shape>(acc, thread, window);
}

} // namespace wpk
