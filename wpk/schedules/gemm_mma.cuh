// Matrix product on the tensor cores, with batch and broadcasting.
//
// The grid is MatrixBlock's. Problem and Schedule are named by gemm_mma.py. Operands whose reduction is contiguous are
// copied into tiles as they lie; a 16-bit b that is contiguous along its columns is copied so too and transposed by
// ldmatrix; all else is gathered.
#pragma once

#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/epilogue/matrix_block.cuh>
#include <wpk/kernels/sums/split_k.cuh>
#include <wpk/kernels/tiles/tile_async.cuh>
#include <wpk/kernels/tiles/tile_gather.cuh>
#include <wpk/kernels/tiles/tile_mma.cuh>

namespace wpk
{

// How an operand reaches shared memory.
enum class Loading
{
    copied,
    copiedAcross,
    gathered
};

template <class Stored, class T, int Vector>
inline constexpr bool canCopy = isSame<Stored, T> && Vector * sizeof(T) >= 4;

// Vector is the number of neighbours along the reduction (or, VectorAcross, along rows) in one access.
template <class Stored, class T, int Vector, int VectorAcross>
inline constexpr Loading loadingOf = canCopy<Stored, T, Vector>                                ? Loading::copied
                                     : sizeof(Stored) == 2 && canCopy<Stored, T, VectorAcross> ? Loading::copiedAcross
                                                                                               : Loading::gathered;

template <Loading How, class Source, class Across, class Stored, int Rows, int Depth, int Threads, int Vector,
    int VectorAcross>
using OperandLoader =
    Select<How == Loading::copied, AsyncLoader<Source, Rows, Depth * sizeof(Stored), Threads, Vector * sizeof(Stored)>,
        Select<How == Loading::copiedAcross,
            AsyncDepthLoader<Across, Depth, Rows * sizeof(Stored), Threads, VectorAcross * sizeof(Stored)>,
            GatherLoader<Source, MmaSink<Stored, Depth * sizeof(Stored)>, Rows, Depth, Threads, Vector, Vector == 1>>>;

template <class Problem, class Schedule>
WPK_DEVICE void gemmMma(Inputs<2 + Problem::Operands::count + kRowNormInputs<Problem>> inputs, int leading,
    const Outputs& outputs, const Partials& partials = {})
{
    using T = typename Problem::Multiply;
    using A = typename Problem::A;
    using B = typename Problem::B;
    using Stored = typename MmaStored<T>::Type;
    using StoredB = typename MmaStored<T>::TypeB;
    constexpr Loading kLoadingA = canCopy<Stored, A, Problem::a_vector> ? Loading::copied : Loading::gathered;
    constexpr Loading kLoadingB = loadingOf<StoredB, B, Problem::b_vector, Problem::b_vector_across>;
    constexpr bool kAcross = kLoadingB == Loading::copiedAcross;
    using Shape = MmaShape<T, Schedule, kAcross>;
    // b_depth is k, or the length of a packed column, whose end is zeros.
    using SourceA = MatrixSource<A, Problem::a_m, Problem::a_k, Problem::k>;
    using SourceB = MatrixSource<B, Problem::b_n, Problem::b_k, Problem::b_depth>;
    using AcrossB = MatrixSource<B, Problem::b_k, Problem::b_n, Problem::n>;
    using LoaderA = OperandLoader<kLoadingA, SourceA, SourceA, Stored, Shape::blockM, Shape::blockK, Shape::threads,
        Problem::a_vector, 1>;
    using LoaderB = OperandLoader<kLoadingB, SourceB, AcrossB, StoredB, Shape::blockN, Shape::blockK, Shape::threads,
        Problem::b_vector, Problem::b_vector_across>;
    constexpr bool kRound = isSame<T, Tf32>;
    using Fragments =
        MmaFragments<T, Shape, kAcross, kRound, kRound && !Problem::b_constant>; // constants are packed rounded
    WPK_SHARED(unsigned char, shared);
    static_assert(Schedule::shared_bytes == Shape::sharedBytes, "Python and C++ count the same shared memory");

    const MatrixBlock<Problem, Shape> block(inputs, leading);
    const SplitRange<Schedule::split, ceilDivide(Problem::k, Shape::blockK)> range;
    const int firstDepth = range.first * Shape::blockK;
    const auto window = block.window(inputs.at + 2, outputs);
    prefetchTileConstants<Problem, Shape::blockM, Shape::blockN, Shape::threads>(window);
    prefetchColumnSums<Problem, Shape::blockN>(window);
    LoaderA loaderA({block.a, block.m}, block.firstRow, firstDepth);
    LoaderB loaderB({block.b, kAcross ? Problem::k : Problem::n}, block.firstColumn, firstDepth);

    typename Shape::Sum acc[Shape::tilesM][Shape::tilesN][4] = {};
    static_assert(!kNormsRows<Problem> || kTakesMoments<Problem> || Schedule::split == 1,
        "a row is normalised by all of its elements");
    Select<kTakesMoments<Problem>, FragmentsWithMoments<Problem, Shape>,
        Select<kNormsRows<Problem>, NormedFragments<Problem, Shape>, RawRows>>
        rows;
    // @constant_b
    multiplyTiles<T, Shape, Fragments, Problem::b_constant>(acc, shared, loaderA, loaderB, range.count, NoLimits{},
        range.first * (Shape::blockK / MmaDepth<T>::value), rows);
    if constexpr (kNormsRows<Problem>)
        rows.normalise(acc, window, range.part);
    if (!range.template sum<Shape::threads>(acc, shared, partials))
        return;
    storeTiles<Problem, Shape>(acc, shared, window);
}

} // namespace wpk
