// Convolution of an image of few channels on the tensor cores: a block reads the patch under its output pixels once,
// and takes the rows of the implicit matrix product from there (tile_patch.cuh). The whole reduction at once.
//
// Grid: runs of Schedule::tiles tiles of output pixels, tiles of filters. Problem and Schedule are named by
// conv_patch.py. Filters are packed as rows of chunks.
#pragma once

#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/operands/operands.cuh>
#include <wpk/kernels/tiles/tile_mma.cuh>
#include <wpk/kernels/tiles/tile_patch.cuh>
#include <wpk/kernels/tiles/tile_store.cuh>

namespace wpk
{

// The shape of a block's work, and where its shared memory has what.
template <class T, class Problem, class Schedule>
struct PatchShape
{
    using Stored = typename MmaStored<T>::Type;
    using PatchOf = Patch<Stored, Problem, Schedule>;
    static constexpr int tileQ = Schedule::tile_q;
    static constexpr int blockM = Schedule::tile_p * tileQ, blockN = Schedule::block_n;
    static constexpr int warpsM = Schedule::warps_m, warpsN = Schedule::warps_n;
    static constexpr int threads = warpsM * warpsN * kWarpSize;
    static constexpr int warpM = blockM / warpsM, warpN = blockN / warpsN;
    static constexpr int tilesM = warpM / 16, tilesN = warpN / 8;
    static constexpr int steps = ceilDivide(PatchOf::kChunks, 2); // of mma
    static constexpr int leastSteps = 4;
    // So many rows of the filter are whole steps, and enough of them to hide what a step loads.
    static constexpr int wholeRows = PatchOf::kChunksARow % 2 == 0 ? 1 : 2;
    static constexpr int groupRows = wholeRows * ceilDivide(leastSteps * 2, wholeRows* PatchOf::kChunksARow);
    static constexpr int groupSteps = groupRows * PatchOf::kChunksARow / 2;
    static constexpr int groups = Problem::filter_h >= 2 * groupRows ? Problem::filter_h / groupRows : 0;
    static constexpr int filterRow = steps * 2 * kChunkBytes;
    static constexpr int filterPitch = filterRow + kChunkBytes; // odd chunks: eight rows lie in all banks
    static constexpr int filterBytes = blockN * filterPitch;
    // As in MmaShape.
    static constexpr int stagingStride = warpN + 8;
    static constexpr int stagingBytes = 16 * stagingStride * 4;
    static constexpr int sharedBytes = filterBytes + PatchOf::kBytes + warpsM * warpsN * stagingBytes;

    static_assert(threads <= 1024, "a block has at most 1024 threads");
};

// Starts copying the filters of a block.
template <class Shape, class Problem>
WPK_DEVICE void copyFilters(unsigned char* shared, const void* filters, int firstFilter)
{
    constexpr int kCopiesARow = Shape::filterRow / kChunkBytes, kCopies = Shape::blockN * kCopiesARow;
    const unsigned char* const source = static_cast<const unsigned char*>(filters);
    const SharedAddress target = sharedAddress(shared);
    WPK_UNROLL
    for (int i = 0; i < ceilDivide(kCopies, Shape::threads); ++i)
    {
        const int copy = static_cast<int>(threadIdx.x) + i * Shape::threads;
        if (kCopies % Shape::threads != 0 && copy >= kCopies)
            break;
        const int row = copy / kCopiesARow, byte = copy % kCopiesARow * kChunkBytes;
        const bool exists = firstFilter + row < Problem::k;
        const int offset = exists ? (firstFilter + row) * Shape::filterRow + byte : 0;
        copyAsync<kChunkBytes>(target + row * Shape::filterPitch + byte, source + offset, exists ? kChunkBytes : 0);
    }
    commitCopies();
}

// One warp's fragments of the patch and the filters.
template <class Shape>
class PatchFragments
{
    using PatchOf = typename Shape::PatchOf;

public:
    WPK_DEVICE PatchFragments(const unsigned char* filters, const unsigned char* patch)
    {
        const int lane = laneIndex();
        const int warpM = warpIndex() / Shape::warpsN, warpN = warpIndex() % Shape::warpsN;
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
        {
            const int row = warpM * Shape::warpM + i * 16 + lane % 16;
            pixels_[i] = sharedAddress(patch) + PatchOf::pixelOffset(row / Shape::tileQ, row % Shape::tileQ);
        }
        const int filter = warpN * Shape::warpN + lane % 8 + lane / 16 * 8;
        filters_ = sharedAddress(filters) + filter * Shape::filterPitch + lane / 8 % 2 * kChunkBytes;
    }

    // Goes on to other rows of the filter, whose steps are the first ones then.
    WPK_DEVICE void advance(int rows, int steps)
    {
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
            pixels_[i] += rows * PatchOf::kRowBytes;
        filters_ += steps * 2 * kChunkBytes;
    }

    // Fragments of a step, two chunks; `before` lie in the rows that were passed.
    WPK_DEVICE void load(int before, int step, uint32 (&a)[Shape::tilesM][4], uint32 (&b)[Shape::tilesN][2]) const
    {
        const int taps[] = {PatchOf::taps(before + step * 2), PatchOf::taps(before + step * 2 + 1)};
        const int second = taps[1] > 0 ? PatchOf::chunkOffset(step * 2 + 1) : 0; // behind the last one any will do
        const int chunk = laneIndex() < 16 ? PatchOf::chunkOffset(step * 2) : second;
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
        {
            loadMatrix4(a[i], pixels_[i] + chunk);
            keepTaps(a[i][0], a[i][1], taps[0]);
            keepTaps(a[i][2], a[i][3], taps[1]);
        }
        WPK_UNROLL
        for (int j = 0; j < Shape::tilesN; j += 2)
        {
            uint32 pair[4];
            loadMatrix4(pair, filters_ + step * 2 * kChunkBytes + j * 8 * Shape::filterPitch);
            b[j][0] = pair[0];
            b[j][1] = pair[1];
            b[j + 1][0] = pair[2];
            b[j + 1][1] = pair[3];
        }
    }

private:
    // Pixels behind the filter's last tap are not multiplied by its zeros: they may be infinite.
    static WPK_DEVICE void keepTaps(uint32& upper, uint32& lower, int taps)
    {
        if (taps < PatchOf::kTaps && laneIndex() % 4 * PatchOf::kTaps / 4 >= taps)
            upper = lower = 0;
    }

    SharedAddress pixels_[Shape::tilesM], filters_;
};

// acc += so many steps of a tile's product, `before` chunks of the filter having passed.
template <class T, class Shape, int Steps, int Before>
WPK_DEVICE void addSteps(float (&acc)[Shape::tilesM][Shape::tilesN][4], const PatchFragments<Shape>& fragments)
{
    uint32 a[2][Shape::tilesM][4], b[2][Shape::tilesN][2];
    fragments.load(Before, 0, a[0], b[0]);
    WPK_UNROLL
    for (int step = 0; step < Steps; ++step)
    {
        if (step + 1 < Steps)
            fragments.load(Before, step + 1, a[(step + 1) % 2], b[(step + 1) % 2]);
        mmaTile(T{}, acc, a[step % 2], b[step % 2]);
    }
}

// The product of a tile: a loop over groups of the filter's rows that are alike, and what is left.
template <class T, class Shape>
WPK_DEVICE void multiplyPatch(float (&acc)[Shape::tilesM][Shape::tilesN][4], PatchFragments<Shape> fragments)
{
    constexpr int kPassed = Shape::groups * Shape::groupSteps * 2;
    WPK_KEEP_LOOP
    for (int group = 0; group < Shape::groups; ++group)
    {
        addSteps<T, Shape, Shape::groupSteps, 0>(acc, fragments);
        fragments.advance(Shape::groupRows, Shape::groupSteps);
    }
    if constexpr (Shape::steps > Shape::groups * Shape::groupSteps)
        addSteps<T, Shape, Shape::steps - Shape::groups * Shape::groupSteps, kPassed>(acc, fragments);
}

template <class Problem, class Schedule>
WPK_DEVICE void convPatch(Inputs<2 + Problem::Operands::count> inputs, int n, void* y)
{
    using T = typename Problem::Multiply;
    using Shape = PatchShape<T, Problem, Schedule>;
    using PatchOf = typename Shape::PatchOf;
    using Tile = OutputTile<Problem, Schedule>;
    WPK_SHARED(unsigned char, shared);
    static_assert(Schedule::shared_bytes == Shape::sharedBytes, "Python and C++ count the same shared memory");
    unsigned char* const patch = shared + Shape::filterBytes;
    unsigned char* const staging = patch + PatchOf::kBytes;

    const int firstFilter = static_cast<int>(blockIdx.y) * Shape::blockN;
    copyFilters<Shape, Problem>(shared, inputs.at[1], firstFilter);
    const int first = static_cast<int>(blockIdx.x) * Schedule::tiles;
    const int end = minOf(first + Schedule::tiles, n * Tile::kTiles);
    const auto window = [=](int index)
    {
        return OutputWindow{Tile(index), inputs.at + 2, y, Shape::blockM, Problem::k, Problem::k + Problem::y_padding}
            .from(0, firstFilter);
    };
    prefetchTileConstants<Problem, Shape::blockM, Shape::blockN, Shape::threads>(window(first));
    waitIfEarly<Schedule>(); // @previous_awaited
    PatchLoader<T, PatchOf, Problem, typename Shape::Stored, Shape::threads> loader(inputs.at[0]);
    loader.begin(Tile(first));
    loader.finish(patch);
    waitCopies<0>();
    const PatchFragments<Shape> fragments(shared, patch);
    for (int index = first; index < end; ++index)
    {
        __syncthreads(); // the patch is here for everyone
        const bool more = Schedule::tiles > 1 && index + 1 < end;
        if (more)
        {
            loader.begin(Tile(index + 1));
        }
        else
        {
            releaseIfEarly<Schedule>();
        }
        float acc[Shape::tilesM][Shape::tilesN][4] = {};
        multiplyPatch<T, Shape>(acc, fragments);
        giveBackCuts(T{}, acc);
        if (more)
        {
            __syncthreads(); // nobody reads the patch any more
            loader.finish(patch);
        }
        storeTiles<Problem, Shape>(acc, staging, window(index));
    }
}

} // namespace wpk
