// A block's matrix product on the tensor cores: a pipeline of tiles in shared memory, filled by loaders while
// earlier tiles are multiplied.
//
// D[row][column] += sum over k of A[row][k] * B[column][k]; A lies in shared memory row by row, B column by
// column (k contiguous) or, BIsDepthMajor, as rows of k with the columns contiguous.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/copies/async_copy.cuh>
#include <wpk/kernels/mma/channel_limits.cuh>
#include <wpk/kernels/mma/mma.cuh>
#include <wpk/kernels/mma/row_norm.cuh>
#include <wpk/kernels/mma/split_fp32.cuh>
#include <wpk/kernels/tiles/tile_shared.cuh>
#include <wpk/kernels/tiles/tile_store.cuh>

namespace wpk
{

// The shape of a block's work. Schedule names block_m, block_n, block_k, warps_m, warps_n, stages and early.
template <class T, class Schedule, bool BIsDepthMajor>
struct MmaShape
{
    using Stored = typename MmaStored<T>::Type;
    using StoredB = typename MmaStored<T>::TypeB; // of the same size
    using Sum = typename MmaStored<T>::Sum;
    static constexpr int kElement = sizeof(Stored);
    static constexpr int blockM = Schedule::block_m, blockN = Schedule::block_n, blockK = Schedule::block_k;
    static constexpr int warpsM = Schedule::warps_m, warpsN = Schedule::warps_n, stages = Schedule::stages;
    static constexpr bool early = Schedule::early != 0;
    static constexpr int threads = warpsM * warpsN * kWarpSize;
    static constexpr int warpM = blockM / warpsM, warpN = blockN / warpsN;
    static constexpr int tilesM = warpM / 16, tilesN = warpN / 8;
    static constexpr int rowBytesA = blockK * kElement;
    static constexpr int rowBytesB = (BIsDepthMajor ? blockN : blockK) * kElement;
    static constexpr int bytesA = blockM * rowBytesA, bytesB = blockN * blockK * kElement;
    static constexpr int stageBytes = bytesA + bytesB;
    // Floats between rows of a warp's staging; 8 more than its columns keep its writes free of conflicts.
    static constexpr int stagingStride = warpN + 8;
    static constexpr int stagingBytes = 16 * stagingStride * 4;
    static constexpr int sharedBytes = maxOf(stages * stageBytes, threads / kWarpSize * stagingBytes);

    static_assert(threads <= 1024, "a block has at most 1024 threads");
};

// One warp's fragments of a tile. RoundA, RoundB: tf32 operands that memory does not hold rounded.
template <class T, class Shape, bool BIsDepthMajor, bool RoundA, bool RoundB>
class MmaFragments
{
    using TileA = SwizzledTile<Shape::rowBytesA>;
    using TileB = SwizzledTile<Shape::rowBytesB>;

public:
    WPK_DEVICE MmaFragments()
    {
        const int lane = laneIndex();
        const int warpM = warpIndex() / Shape::warpsN, warpN = warpIndex() % Shape::warpsN;
        rowA_ = warpM * Shape::warpM + lane % 16;
        chunkA_ = lane / 16;
        if constexpr (BIsDepthMajor)
        {
            rowB_ = lane % 16;
            chunkB_ = warpN * Shape::warpN / 8 + lane / 16;
        }
        else
        {
            rowB_ = warpN * Shape::warpN + lane % 8 + lane / 16 * 8;
            chunkB_ = lane / 8 % 2;
        }
    }

    // Fragments of the mma step `step` of the tile at `stage`.
    WPK_DEVICE void load(
        SharedAddress stage, int step, uint32 (&a)[Shape::tilesM][4], uint32 (&b)[Shape::tilesN][2]) const
    {
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
        {
            loadMatrix4(a[i], stage + TileA::offset(rowA_, step * 2 + chunkA_) + i * 16 * Shape::rowBytesA);
            roundAll<RoundA>(a[i]);
        }
        const SharedAddress tileB = stage + Shape::bytesA;
        WPK_UNROLL
        for (int j = 0; j < Shape::tilesN; j += 2)
        {
            uint32 pair[4];
            if constexpr (BIsDepthMajor)
            {
                loadMatrix4Transposed(pair, tileB + TileB::offset(rowB_, chunkB_ + j) + step * 16 * Shape::rowBytesB);
            }
            else
            {
                loadMatrix4(pair, tileB + TileB::offset(rowB_, step * 2 + chunkB_) + j * 8 * Shape::rowBytesB);
            }
            roundAll<RoundB>(pair);
            b[j][0] = pair[0];
            b[j][1] = pair[1];
            b[j + 1][0] = pair[2];
            b[j + 1][1] = pair[3];
        }
    }

private:
    template <bool Round>
    static WPK_DEVICE void roundAll(uint32 (&words)[4])
    {
        if constexpr (Round)
        {
            WPK_UNROLL
            for (int e = 0; e < 4; ++e)
                words[e] = roundToTf32(asFloat(words[e]));
        }
    }

    int rowA_, chunkA_, rowB_, chunkB_;
};

// Starts loading the first tiles, of which there are `steps` in all: as many as the pipeline has stages but one. B's go
// first where no kernel writes B, so that a kernel that is launched early asks for them before those in front have
// ended.
template <class Shape, bool ConstantB, class LoaderA, class LoaderB>
WPK_DEVICE void fillPipeline(unsigned char* shared, LoaderA& loaderA, LoaderB& loaderB, int steps)
{
    constexpr bool kAhead = Shape::early && ConstantB;
    if constexpr (kAhead)
    {
        static_assert(LoaderB::kAsynchronous, "a constant operand is copied as it lies");
        WPK_UNROLL
        for (int i = 0; i < Shape::stages - 1; ++i)
        {
            if (i < steps)
                loaderB.begin(shared + i * Shape::stageBytes + Shape::bytesA); // @constants_begun
        }
    }
    if (Shape::early) // @previous_awaited
        waitForPrevious();
    WPK_UNROLL
    for (int i = 0; i < Shape::stages - 1; ++i)
    {
        if (i < steps)
        {
            unsigned char* const stage = shared + i * Shape::stageBytes;
            loaderA.begin(stage);
            if (!kAhead)
                loaderB.begin(stage + Shape::bytesA);
            loaderA.finish(stage);
            if (!kAhead)
                loaderB.finish(stage + Shape::bytesA);
        }
        commitCopies();
    }
}

// The fragments of a step of the reduction, between their channels' limits.
template <class T, int Tiles, class Limits>
WPK_DEVICE void keepStep(uint32 (&fragments)[Tiles][4], const Limits& limits, int step)
{
    typename Limits::Step kept[1];
    limits.template load<T, 1>(kept, step);
    Limits::template keepFragments<T>(fragments, kept[0]);
}

// A warp's rows that are normalised behind their products (row_norm.cuh).
template <class Problem, class Shape>
class NormedFragments
{
    static constexpr bool isWhole = Problem::k % Shape::blockK == 0;

public:
    // Those of a step of the reduction; all lanes call it, one step after the other.
    WPK_DEVICE void look(const uint32 (&fragments)[Shape::tilesM][4], int step)
    {
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
        {
            if (step == 0)
                moments_[i].begin(fragments[i]);
            moments_[i].template add<isWhole>(fragments[i], step * 16);
        }
    }

    // The products of a block whose tile begins with `window`.
    template <class Rows>
    WPK_DEVICE void normalise(
        float (&acc)[Shape::tilesM][Shape::tilesN][4], const OutputWindow<Rows>& window, int) const
    {
        ColumnSums<Problem, Shape::tilesN> sums;
        sums.load(window.from(0, warpIndex() % Shape::warpsN * Shape::warpN));
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
        {
            RowScale rows[2];
            moments_[i].finish(rows, asFloat(Problem::row_epsilon));
            sums.apply(acc[i], rows, 0);
        }
    }

private:
    RowMoments<typename Problem::Multiply, Problem::row_is_centred, Problem::k> moments_[Shape::tilesM];
};

// The same of rows whose moments a kernel in front has stored.
template <class Problem, class Shape>
struct FragmentsWithMoments : RawRows
{
    // The products of a part of the reduction.
    template <class Rows>
    WPK_DEVICE void normalise(
        float (&acc)[Shape::tilesM][Shape::tilesN][4], const OutputWindow<Rows>& window, int part) const
    {
        const int warpM = warpIndex() / Shape::warpsN, warpN = warpIndex() % Shape::warpsN;
        const int row = window.firstRow + warpM * Shape::warpM + laneIndex() / 4;
        RowScale rows[Shape::tilesM][2];
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
            scaleByMoments<Problem>(rows[i], window, row + i * 16);
        normaliseProducts<Problem>(acc, rows, window.from(0, warpN * Shape::warpN), part);
    }
};

// acc += A * B over the tiles at `stage`; the fragments of a step are loaded during the step before. The first one is
// `firstStep` of the reduction, which says whose channels' limits hold. `rows` look at those of A.
template <class T, class Shape, class Fragments, class Limits, class Rows>
WPK_DEVICE void multiplyStage(typename Shape::Sum (&acc)[Shape::tilesM][Shape::tilesN][4], const Fragments& fragments,
    SharedAddress stage, const Limits& limits, int firstStep, Rows& rows)
{
    constexpr int kSteps = Shape::blockK / MmaDepth<T>::value;
    uint32 a[2][Shape::tilesM][4], b[2][Shape::tilesN][2];
    fragments.load(stage, 0, a[0], b[0]);
    keepStep<T>(a[0], limits, firstStep);
    WPK_UNROLL
    for (int step = 0; step < kSteps; ++step)
    {
        if (step + 1 < kSteps)
        {
            fragments.load(stage, step + 1, a[(step + 1) % 2], b[(step + 1) % 2]);
            keepStep<T>(a[(step + 1) % 2], limits, firstStep + step + 1);
        }
        mmaTile(T{}, acc, a[step % 2], b[step % 2]);
        rows.look(a[step % 2], firstStep + step);
    }
}

// Multiplies all `steps` tiles. `shared` holds Shape::stages stages of Shape::stageBytes. ConstantB: no kernel writes
// B. Behind it what earlier kernels touch may be touched. `limits` keep A; the first tile's first mma step is
// `firstStep`. `rows` look at A.
template <class T, class Shape, class Fragments, bool ConstantB, class LoaderA, class LoaderB, class Limits, class Rows>
WPK_DEVICE void multiplyTiles(typename Shape::Sum (&acc)[Shape::tilesM][Shape::tilesN][4], unsigned char* shared,
    LoaderA& loaderA, LoaderB& loaderB, int steps, const Limits& limits, int firstStep, Rows& rows)
{
    constexpr int kSteps = Shape::blockK / MmaDepth<T>::value;
    const Fragments fragments;
    fillPipeline<Shape, ConstantB>(shared, loaderA, loaderB, steps);
    int reading = 0, writing = Shape::stages - 1;
    for (int tile = 0; tile < steps; ++tile)
    {
        waitCopies<Shape::stages - 2>();
        __syncthreads(); // the tile is here for everyone, and nobody reads the stage that is written next
        unsigned char* const target = shared + writing * Shape::stageBytes;
        const bool more = tile + Shape::stages - 1 < steps;
        if (more)
        {
            loaderA.begin(target);
            loaderB.begin(target + Shape::bytesA);
        }
        else if (Shape::early)
        {
            releaseNext(); // all is asked for: from now on this block needs less than it holds
        }
        commitCopies();
        multiplyStage<T, Shape>(acc, fragments, sharedAddress(shared + reading * Shape::stageBytes), limits,
            firstStep + tile * kSteps, rows);
        if (more)
        {
            loaderA.finish(target);
            loaderB.finish(target + Shape::bytesA);
        }
        reading = reading + 1 == Shape::stages ? 0 : reading + 1;
        writing = writing + 1 == Shape::stages ? 0 : writing + 1;
    }
    waitCopies<0>();
    __syncthreads(); // the stages are free for the epilogue
    giveBackCuts(T{}, acc);
}

// The same of rows that are multiplied as they are.
template <class T, class Shape, class Fragments, bool ConstantB, class LoaderA, class LoaderB, class Limits = NoLimits>
WPK_DEVICE void multiplyTiles(typename Shape::Sum (&acc)[Shape::tilesM][Shape::tilesN][4], unsigned char* shared,
    LoaderA& loaderA, LoaderB& loaderB, int steps, const Limits& limits = Limits(), int firstStep = 0)
{
    RawRows rows;
    multiplyTiles<T, Shape, Fragments, ConstantB>(acc, shared, loaderA, loaderB, steps, limits, firstStep, rows);
}

// Puts groups of a gathered row into a swizzled tile as 16-byte chunks of To.
template <class To, int RowBytes>
struct MmaSink
{
    static constexpr int kGroup = 16 / sizeof(To);
    template <class From>
    static WPK_DEVICE void put(unsigned char* stage, int row, int column, const From (&values)[kGroup])
    {
        Vector<To, kGroup> chunk;
        WPK_UNROLL
        for (int e = 0; e < kGroup; ++e)
        {
            if constexpr (isSame<From, To>)
            {
                chunk[e] = values[e];
            }
            else
            {
                chunk[e] = fromFloat<To>(toFloat(values[e]));
            }
        }
        unsigned char* const target = stage + SwizzledTile<RowBytes>::offset(row, column / kGroup);
        store<To, kGroup>(reinterpret_cast<To*>(target), chunk);
    }
};

} // namespace wpk
