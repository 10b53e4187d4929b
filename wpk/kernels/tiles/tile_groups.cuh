// The patch under a tile of output pixels in a grouped convolution: several groups' channels of each pixel side by
// side, and the fragments that mma takes from it (mma.cuh), of each bundle of groups its own.
//
// A bundle is one group; or two, where a group's channels are half a chunk of eight or its filters half a tile of
// eight. Its reduction runs, for each row of the filter, over (tap, chunk), two of which are a step of mma; a chunk
// that is left over is half a step.
//
// Warps walk down strips of eight columns, two at once. What is loaded of a row of the patch is multiplied by all rows
// of the filter, for the output rows that it is under.
#pragma once

#include <wpk/kernels/copies/async_copy.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/epilogue/output_tile.cuh>
#include <wpk/kernels/mma/mma.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

// The shape of a block's work, and where its shared memory has what. Problem::c and k are those of a group.
template <class T, class Problem, class Schedule>
struct GroupShape
{
    using Stored = typename MmaStored<T>::Type;
    static_assert(sizeof(Stored) == 2, "products of 16 bits");
    static constexpr int kChunk = 8, kChunkBytes = 16, kStrip = 8; // elements, bytes, columns
    static constexpr int tileP = Schedule::tile_p, tileQ = Schedule::tile_q;
    static constexpr int blockM = tileP * tileQ, blockN = Schedule::block_n;
    static constexpr int warpsM = Schedule::warps_m, warpsN = Schedule::warps_n;
    static constexpr int threads = warpsM * warpsN * kWarpSize;
    // Of a warp's step down a pair of strips.
    static constexpr int warpM = 2 * kStrip, warpN = blockN / warpsN;
    static constexpr int tilesM = 1, tilesN = warpN / 8;

    // Strips lie side by side, and in bands one below the other where that gives each warp a pair.
    static constexpr int stripsARow = tileQ / kStrip;
    static constexpr int bands = maxOf(1, 2 * warpsM / stripsARow), pairs = maxOf(1, stripsARow / (2 * warpsM));
    static constexpr int walk = tileP / bands; // rows of output pixels of a strip
    static_assert(tileQ % kStrip == 0 && stripsARow * bands == 2 * warpsM * pairs, "warps have whole pairs of strips");
    static_assert(walk * bands == tileP, "bands are of as many rows");

    static constexpr bool isMixed = Problem::c % kChunk != 0 || Problem::k % 8 != 0; // bundles of two groups
    static constexpr int bundleGroups = isMixed ? 2 : 1, bundleFilters = bundleGroups * Problem::k;
    static constexpr int bundleChunks = bundleGroups * Problem::c / kChunk;
    static constexpr int bundleTiles = minOf(bundleFilters, warpN) / 8, bundles = tilesN / bundleTiles; // of a warp
    static_assert(warpN % 8 == 0 && blockN % bundleFilters == 0, "a block has whole bundles");
    static_assert(warpN % bundleFilters == 0 || bundleFilters % warpN == 0, "a warp has whole bundles, or a part");

    static constexpr int rowChunks = Problem::filter_w * bundleChunks, rowSteps = rowChunks / 2; // of a filter's row
    static constexpr bool isOdd = rowChunks % 2 != 0;
    // Rows of sums that a row of the patch is added to: those of all of the filter's rows, or one after another.
    static constexpr bool isCarried = Problem::stride_h == 1 && Problem::dilation_h == 1;
    static constexpr int live = isCarried ? Problem::filter_h : 1;
    static constexpr int atOnce = isOdd && bundles % 2 == 0 ? 2 : 1; // bundles, whose chunks that are left share a load

    static constexpr int blockChannels = blockN / Problem::k * Problem::c;
    static constexpr int pixelChunks = ceilDivide(blockChannels, kChunk);
    static constexpr int pixelBytes = (pixelChunks | 1) * kChunkBytes; // odd chunks: eight neighbours lie in all banks
    static constexpr int rows = (tileP - 1) * Problem::stride_h + (Problem::filter_h - 1) * Problem::dilation_h + 1;
    static constexpr int columns = (tileQ - 1) * Problem::stride_w + (Problem::filter_w - 1) * Problem::dilation_w + 1;
    static constexpr int rowBytes = columns * pixelBytes, patchBytes = rows * rowBytes;
    static constexpr int patches = Schedule::tiles > 1 ? 2 : 1;
    static constexpr int stagingStride = warpN + (warpN % 16 == 0 ? 8 : 16); // rows begin eight banks apart
    static constexpr int stagingBytes = 16 * stagingStride * 4;
    static constexpr int sharedBytes = patches * patchBytes + warpsM * warpsN * stagingBytes;

    // From an output pixel's first tap in a row of the patch to a chunk of the bundle.
    static WPK_DEVICE constexpr int chunkOffset(int chunk)
    {
        return chunk / bundleChunks * Problem::dilation_w * pixelBytes + chunk % bundleChunks * kChunkBytes;
    }
};

// The pixels of a step down the strips of a tile, as a map of rows (epilogue.cuh): sixteen of each pair of strips.
template <class Problem, class Shape>
struct StripRows
{
    int image, p, q; // of the first strip's

    template <class Tensor>
    WPK_DEVICE int64 offset(int row) const
    {
        return computedHere(
            image * Tensor::outer + (p + down(row)) * Tensor::middle + (q + right(row)) * Tensor::inner);
    }
    static WPK_DEVICE constexpr int down(int row)
    {
        return row / Shape::kStrip / Shape::stripsARow * Shape::walk;
    }
    static WPK_DEVICE constexpr int right(int row)
    {
        return row / Shape::kStrip % Shape::stripsARow * Shape::kStrip + row % Shape::kStrip;
    }
};

// Pixels of a tile that reaches over the image's edge are not stored (tile_store.cuh).
template <class Problem, class Shape>
WPK_DEVICE bool isRowStored(const StripRows<Problem, Shape>& strips, int row, int)
{
    return (Problem::p % Shape::tileP == 0 || strips.p + strips.down(row) < Problem::p)
           && (Problem::q % Shape::tileQ == 0 || strips.q + strips.right(row) < Problem::q);
}

// Starts copying the patch under a tile, of a block's channels from `firstChannel` on; zeros outside of the image and
// behind the last channel.
template <class Shape, class Problem, class Tile>
WPK_DEVICE void copyGroups(SharedAddress patch, const void* x, const Tile& tile, int firstChannel)
{
    constexpr uint32 kChunks = Shape::pixelChunks, kColumns = Shape::columns, kPixels = Shape::rows * kColumns;
    // Each thread has the same chunk of all of its pixels.
    constexpr uint32 kAtOnce = Shape::threads / kChunks;
    static_assert(kAtOnce > 0, "threads bring whole pixels");
    constexpr int kChannels = Problem::c * Problem::groups;
    constexpr bool isWhole = Problem::groups * Problem::k % Shape::blockN == 0 && Problem::y_padding == 0;
    // An address of its own, to which an offset is one addition.
    const auto* const image = reinterpret_cast<const unsigned char*>(computedHere(
        reinterpret_cast<int64>(static_cast<const typename Shape::Stored*>(x) + tile.image * Problem::x_n)));
    const int top = tile.p * Problem::stride_h - Problem::pad_h, left = tile.q * Problem::stride_w - Problem::pad_w;
    // Places are computed anew for each tile: kept, they would take the registers of the filters.
    const uint32 thread = static_cast<uint32>(computedHere(static_cast<int>(threadIdx.x)));
    const uint32 own = thread / kChunks, chunk = thread % kChunks;
    WPK_UNROLL
    for (uint32 first = 0; first < kPixels; first += kAtOnce)
    {
        const uint32 pixel = first + own;
        if ((Shape::threads % kChunks != 0 && own == kAtOnce) || (kPixels % kAtOnce != 0 && pixel >= kPixels))
            break;
        const int h = top + static_cast<int>(pixel / kColumns), w = left + static_cast<int>(pixel % kColumns);
        const int channel = firstChannel + static_cast<int>(chunk) * Shape::kChunk;
        const bool exists = static_cast<uint32>(h) < static_cast<uint32>(Problem::h) // @pixel_exists
                            && static_cast<uint32>(w) < static_cast<uint32>(Problem::w)
                            && (isWhole || channel < kChannels);
        const int bytes = isWhole ? Shape::kChunkBytes : minOf(Shape::kChunk, kChannels - channel) * 2;
        const uint32 byte =
            (static_cast<uint32>(h) * static_cast<uint32>(Problem::x_h)
                + static_cast<uint32>(w) * static_cast<uint32>(Problem::x_w) + static_cast<uint32>(channel))
            * 2;
        const auto* const from = image + static_cast<uint32>(computedHere(exists ? static_cast<int>(byte) : 0));
        copyAsync<Shape::kChunkBytes>(
            patch + pixel * Shape::pixelBytes + chunk * Shape::kChunkBytes, from, exists ? bytes : 0);
    }
    commitCopies();
}

// What a warp multiplies of a row of the patch: the chunks of Shape::atOnce bundles.
template <class Shape>
struct GroupRow
{
    uint32 steps[Shape::atOnce][maxOf(1, Shape::rowSteps)][1][4];
    uint32 left[2][1][2]; // the chunk that is left, of each bundle
};

// One warp's fragments of the patch under a pair of strips.
template <class Shape, class Problem>
class GroupFragments
{
public:
    WPK_DEVICE GroupFragments(SharedAddress patch, int pair)
    {
        using Strips = StripRows<Problem, Shape>;
        const int warpM = warpIndex() / Shape::warpsN, warpN = warpIndex() % Shape::warpsN;
        const int row = (pair * Shape::warpsM + warpM) * Shape::warpM + laneIndex() % 16;
        const int bundle = warpN * Shape::warpN / Shape::bundleFilters;
        first_ = patch + Strips::down(row) * Problem::stride_h * Shape::rowBytes
                 + Strips::right(row) * Problem::stride_w * Shape::pixelBytes
                 + bundle * Shape::bundleChunks * Shape::kChunkBytes;
    }

    // Those under row `row` of the strips' own patches, of the warp's bundles from `bundle` on.
    WPK_DEVICE void load(int row, int bundle, GroupRow<Shape>& fragments) const
    {
        constexpr int kBundleBytes = Shape::bundleChunks * Shape::kChunkBytes;
        const SharedAddress at = first_ + row * Shape::rowBytes + bundle * kBundleBytes;
        WPK_UNROLL
        for (int one = 0; one < Shape::atOnce; ++one)
        {
            WPK_UNROLL
            for (int step = 0; step < Shape::rowSteps; ++step)
            {
                const int lower = Shape::chunkOffset(step * 2), upper = Shape::chunkOffset(step * 2 + 1);
                loadMatrix4(fragments.steps[one][step][0], at + ofUpper(upper - lower) + lower + one * kBundleBytes);
            }
        }
        if constexpr (Shape::isOdd)
        {
            uint32 left[4];
            const int next = Shape::atOnce == 2 ? kBundleBytes : 0;
            loadMatrix4(left, at + ofUpper(next) + Shape::chunkOffset(Shape::rowChunks - 1));
            memcpy(fragments.left, left, sizeof left);
        }
    }

private:
    // Lanes 16 to 31 give the addresses of a step's second chunk.
    static WPK_DEVICE int ofUpper(int bytes)
    {
        return laneIndex() < 16 ? 0 : bytes; // @chunk_chosen
    }

    SharedAddress first_; // the lane's pixel under the first tap
};

// All fragments of a warp's filters, which no kernel writes. Of a bundle of two groups each filter has zeros for the
// channels of the other one. They are packed in vectors of each tile of eight filters, those of all lanes side by side.
template <class Shape, class Problem>
struct GroupFilters
{
    uint32 words[Shape::tilesN][Problem::filter_h][Shape::rowChunks];

    WPK_DEVICE void load(const void* filters, int firstFilter)
    {
        constexpr int kWords = Problem::filter_h * Shape::rowChunks, kVectors = ceilDivide(kWords, 4);
        constexpr int kTiles = ceilDivide(Problem::k * Problem::groups, 8);
        const int first = (firstFilter + warpIndex() % Shape::warpsN * Shape::warpN) / 8;
        WPK_UNROLL
        for (int j = 0; j < Shape::tilesN; ++j)
        {
            const bool exists = first + j < kTiles; // @tile_exists
            const auto* const tile = static_cast<const uint32*>(filters) + (exists ? first + j : 0) * kVectors * 128;
            WPK_UNROLL
            for (int v = 0; v < kVectors; ++v)
            {
                auto vector = zeroVector<uint32, 4>();
                if (exists)
                    vector = wpk::load<uint32, 4>(tile + v * 128 + laneIndex() * 4);
                WPK_UNROLL
                for (int i = 0; i < minOf(4, kWords - v * 4); ++i)
                    words[j][(v * 4 + i) / Shape::rowChunks][(v * 4 + i) % Shape::rowChunks] = vector[i];
            }
        }
    }
};

} // namespace wpk
