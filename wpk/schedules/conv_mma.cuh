// Convolution on the tensor cores as an implicit matrix product: rows are output pixels (n, p, q),
// columns filters of a group, the reduction runs over (r, s, channel).
//
// Grid: tiles of rows, tiles of columns, groups and the parts of each (split_k.cuh). Problem and Schedule
// are named by conv_mma.py.
#pragma once

#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/sums/split_k.cuh>
#include <wpk/kernels/tiles/tile_async.cuh>
#include <wpk/kernels/tiles/tile_gather.cuh>
#include <wpk/kernels/tiles/tile_mma.cuh>

namespace wpk
{

// Whether x is copied into tiles as it is; otherwise it goes through registers.
template <class Problem>
inline constexpr bool convCopiesInput =
    isSame<typename Problem::X, typename MmaStored<typename Problem::Multiply>::Type>
    && Problem::x_vector * sizeof(typename Problem::X) >= 4;

template <class Problem, class Schedule>
WPK_DEVICE void convMma(
    Inputs<2 + Problem::Operands::count + kInputLimits<Problem>> inputs, int n, void* y, const Partials& partials = {})
{
    using T = typename Problem::Multiply;
    using Shape = MmaShape<T, Schedule, false>;
    using Stored = typename Shape::Stored;
    using StoredB = typename Shape::StoredB;
    using Pixels = PixelSource<Problem>;
    using CopiesA = AsyncLoader<Pixels, Shape::blockM, Shape::rowBytesA, Shape::threads,
        Problem::x_vector * sizeof(typename Problem::X)>;
    using GathersA = GatherLoader<Pixels, MmaSink<Stored, Shape::rowBytesA>, Shape::blockM, Shape::blockK,
        Shape::threads, Problem::x_vector, Problem::x_vector == 1>;
    using LoaderA = Select<convCopiesInput<Problem>, CopiesA, GathersA>;
    using Filters = MatrixSource<StoredB, Problem::depth, 1, Problem::depth>;
    using LoaderB = AsyncLoader<Filters, Shape::blockN, Shape::rowBytesB, Shape::threads, 16>;
    static_assert(Problem::depth * Shape::kElement % 16 == 0, "packed filters are whole chunks");
    constexpr bool kRoundA = isSame<T, Tf32>; // filters are packed rounded
    using Fragments = MmaFragments<T, Shape, false, kRoundA, false>;
    WPK_SHARED(unsigned char, shared);
    static_assert(Schedule::shared_bytes == Shape::sharedBytes, "Python and C++ count the same shared memory");

    constexpr int kReduction = Problem::filter_h * Problem::filter_w * Problem::tap;
    const SplitRange<Schedule::split, ceilDivide(kReduction, Shape::blockK)> range;
    const int group = range.outer;
    const int firstRow = static_cast<int>(blockIdx.x) * Shape::blockM;
    const int firstFilter = static_cast<int>(blockIdx.y) * Shape::blockN;
    const int rows = n * (Problem::p * Problem::q);
    const typename Problem::X* const input =
        static_cast<const typename Problem::X*>(inputs.at[0]) + group * (Problem::c * Problem::x_c);
    const StoredB* const filters =
        static_cast<const StoredB*>(inputs.at[1]) + static_cast<int64>(group) * Problem::k * Problem::depth;
    const int valid = (group + 1) * Problem::k;
    const int stored = group + 1 == Problem::groups ? valid + Problem::y_padding : valid;
    const OutputWindow output{PixelRows<Problem::p, Problem::q>{}, inputs.at + 2, y, rows, valid, stored};
    const auto window = output.from(firstRow, group * Problem::k + firstFilter);
    prefetchTileConstants<Problem, Shape::blockM, Shape::blockN, Shape::threads>(window);
    LoaderA loaderA({input, rows}, firstRow, range.first * Shape::blockK);
    LoaderB loaderB({filters, Problem::k}, firstFilter, range.first * Shape::blockK);

    typename Shape::Sum acc[Shape::tilesM][Shape::tilesN][4] = {};
    constexpr int kSteps = Shape::blockK / MmaDepth<T>::value;
    multiplyTiles<T, Shape, Fragments, true>(
        acc, shared, loaderA, loaderB, range.count, inputLimits<Problem>(inputs), range.first * kSteps);
    if (!range.template sum<Shape::threads>(acc, shared, partials))
        return;
    storeTiles<Problem, Shape>(acc, shared, window);
}

} // namespace wpk
