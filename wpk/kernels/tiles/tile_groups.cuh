// The patches under a tile of output pixels in a grouped convolution: several groups' channels of each pixel side by
// side, and the fragments that mma takes from them (mma.cuh), of each group its own.
//
// A group's reduction runs over (tap, channel) in chunks of eight, two of which are a step of mma: of four channels a
// chunk is two taps, of a multiple of eight it lies within one. What is behind the last tap becomes zero in registers,
// on both sides: a pixel that is there could be infinite.
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
    static constexpr int kChunk = 8, kChunkBytes = 16; // elements
    static constexpr int tileQ = Schedule::tile_q;
    static constexpr int blockM = Schedule::tile_p * tileQ, blockN = Schedule::block_n;
    static constexpr int warpsM = Schedule::warps_m, warpsN = Schedule::warps_n;
    static constexpr int threads = warpsM * warpsN * kWarpSize;
    static constexpr int warpM = blockM / warpsM, warpN = blockN / warpsN;
    static constexpr int tilesM = warpM / 16, tilesN = warpN / 8;

    static constexpr int taps = Problem::filter_h * Problem::filter_w;
    static constexpr int chunks = ceilDivide(taps * Problem::c, kChunk), steps = ceilDivide(chunks, 2);
    static constexpr int filterRow = chunks * kChunk; // elements of a packed filter
    // Groups that share a tile of eight filters, whose sums are kept apart; and tiles that have the same group.
    static constexpr int parts = Problem::k < 8 ? 8 / Problem::k : 1;
    static constexpr int tilesOfGroup = Problem::k < 8 ? 1 : minOf(Problem::k, warpN) / 8;
    static constexpr int runs = tilesN / tilesOfGroup;

    static constexpr int blockChannels = blockN / Problem::k * Problem::c;
    static constexpr int pixelChunks = ceilDivide(blockChannels, kChunk);
    static constexpr int pixelBytes = (pixelChunks | 1) * kChunkBytes; // odd chunks: eight neighbours lie in all banks
    static constexpr int rows =
        (Schedule::tile_p - 1) * Problem::stride_h + (Problem::filter_h - 1) * Problem::dilation_h + 1;
    static constexpr int columns = (tileQ - 1) * Problem::stride_w + (Problem::filter_w - 1) * Problem::dilation_w + 1;
    static constexpr int patchBytes = rows * columns * pixelBytes;
    // As in MmaShape.
    static constexpr int stagingStride = warpN + 8;
    static constexpr int stagingBytes = 16 * stagingStride * 4;
    static constexpr int sharedBytes = patchBytes + warpsM * warpsN * stagingBytes;

    // Bytes from an output pixel's first tap to another one of its taps.
    static WPK_DEVICE constexpr int tapOffset(int tap)
    {
        const int down = tap / Problem::filter_w * Problem::dilation_h,
                  right = tap % Problem::filter_w * Problem::dilation_w;
        return (down * columns + right) * pixelBytes;
    }
    // From an output pixel's first tap to a chunk that lies within a tap.
    static WPK_DEVICE constexpr int chunkOffset(int chunk)
    {
        return tapOffset(chunk * kChunk / Problem::c) + chunk * kChunk % Problem::c * 2;
    }
};

// Starts copying the patch under a tile, of a block's channels from `firstChannel` on; zeros outside of the image and
// behind the last channel.
template <class Shape, class Problem, class Tile>
WPK_DEVICE void copyGroups(unsigned char* patch, const void* x, const Tile& tile, int firstChannel)
{
    constexpr int kCopies = Shape::rows * Shape::columns * Shape::pixelChunks;
    constexpr int kChannels = Problem::c * Problem::groups;
    const auto* const image = static_cast<const typename Shape::Stored*>(x) + tile.image * Problem::x_n;
    const int top = tile.p * Problem::stride_h - Problem::pad_h, left = tile.q * Problem::stride_w - Problem::pad_w;
    const SharedAddress target = sharedAddress(patch);
    WPK_UNROLL
    for (int i = 0; i < ceilDivide(kCopies, Shape::threads); ++i)
    {
        const int copy = static_cast<int>(threadIdx.x) + i * Shape::threads;
        if (kCopies % Shape::threads != 0 && copy >= kCopies)
            break;
        const int pixel = copy / Shape::pixelChunks, chunk = copy % Shape::pixelChunks;
        const int h = top + pixel / Shape::columns, w = left + pixel % Shape::columns;
        const int channel = firstChannel + chunk * Shape::kChunk;
        const bool exists =
            h >= 0 && h < Problem::h && w >= 0 && w < Problem::w && channel < kChannels; // @pixel_exists
        const int valid = exists ? minOf(Shape::kChunk, kChannels - channel) * 2 : 0;
        const auto* const from = image + (exists ? h * Problem::x_h + w * Problem::x_w + channel : 0);
        copyAsync<Shape::kChunkBytes>(target + pixel * Shape::pixelBytes + chunk * Shape::kChunkBytes, from, valid);
    }
    commitCopies();
}

// One warp's fragments of the patch.
template <class Shape, class Problem>
class GroupFragments
{
public:
    WPK_DEVICE explicit GroupFragments(const unsigned char* patch) : patch_(patch)
    {
        const int warpM = warpIndex() / Shape::warpsN, warpN = warpIndex() % Shape::warpsN;
        const int channels = warpN * Shape::warpN / Problem::k * Problem::c * 2; // of the warp's first group, in bytes
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
        {
            const int first = warpM * Shape::warpM + i * 16;
            if constexpr (kByMatrix)
            {
                rows_[i][0] = pixelOffset(first + laneIndex() % 16) + channels;
            }
            else
            {
                WPK_UNROLL
                for (int half = 0; half < 2; ++half)
                    rows_[i][half] = pixelOffset(first + half * 8 + laneIndex() / 4) + channels;
            }
        }
    }

    // Those of a step, of the warp's group `group`.
    WPK_DEVICE void load(int step, int group, uint32 (&a)[Shape::tilesM][4]) const
    {
        const int channels = group * (Problem::c * 2);
        if constexpr (kByMatrix)
        {
            const bool isWhole = step * 2 + 1 < Shape::chunks;
            const int second = Shape::chunkOffset(isWhole ? step * 2 + 1 : step * 2);
            const int chunk = (laneIndex() < 16 ? Shape::chunkOffset(step * 2) : second) + channels; // @chunk_chosen
            WPK_UNROLL
            for (int i = 0; i < Shape::tilesM; ++i)
            {
                loadMatrix4(a[i], sharedAddress(patch_) + rows_[i][0] + chunk);
                if (!isWhole)
                    a[i][2] = a[i][3] = 0;
            }
        }
        else
        {
            WPK_UNROLL
            for (int half = 0; half < 2; ++half)
                loadPairs(step * 2 + half, half, channels, a);
        }
    }

private:
    static constexpr bool kByMatrix = Problem::c % Shape::kChunk == 0;
    static_assert(kByMatrix || Problem::c == 4, "a chunk is of one tap, or of two");

    static WPK_DEVICE int pixelOffset(int pixel) // of a tile, its first tap
    {
        const int down = pixel / Shape::tileQ * Problem::stride_h, right = pixel % Shape::tileQ * Problem::stride_w;
        return (down * Shape::columns + right) * Shape::pixelBytes;
    }

    // A chunk of two taps: lanes 0 and 1 of four have the first one.
    WPK_DEVICE void loadPairs(int chunk, int half, int channels, uint32 (&a)[Shape::tilesM][4]) const
    {
        const int tap = chunk * 2, lane = laneIndex() % 4;
        const int second = Shape::tapOffset(minOf(tap + 1, Shape::taps - 1));
        const int offset =
            (lane < 2 ? Shape::tapOffset(minOf(tap, Shape::taps - 1)) : second) + lane % 2 * 4 + channels;
        const bool exists = tap + lane / 2 < Shape::taps; // @tap_exists
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
        {
            WPK_UNROLL
            for (int row = 0; row < 2; ++row)
            {
                uint32& word = a[i][half * 2 + row];
                word = 0;
                if (tap < Shape::taps && exists)
                    word = wpk::load<uint32, 1>(reinterpret_cast<const uint32*>(patch_ + rows_[i][row] + offset))[0];
            }
        }
    }

    const unsigned char* patch_;
    int rows_[Shape::tilesM][2]; // bytes to the first taps of the lane's rows
};

// All fragments of a warp's filters, which no kernel writes.
template <class Shape, class Problem>
struct GroupFilters
{
    uint32 words[Shape::tilesN][Shape::steps][2];

    WPK_DEVICE void load(const void* filters, int firstFilter)
    {
        const auto* const packed = static_cast<const typename Shape::Stored*>(filters);
        const int first = firstFilter + warpIndex() % Shape::warpsN * Shape::warpN + laneIndex() / 4;
        WPK_UNROLL
        for (int j = 0; j < Shape::tilesN; ++j)
        {
            const int filter = first + j * 8;
            const bool exists = filter < Problem::k * Problem::groups; // @filter_exists
            const auto* const row = packed + (exists ? filter * Shape::filterRow : 0) + laneIndex() % 4 * 2;
            WPK_UNROLL
            for (int chunk = 0; chunk < Shape::steps * 2; ++chunk)
            {
                uint32& word = words[j][chunk / 2][chunk % 2];
                word = 0;
                if (chunk < Shape::chunks && exists)
                    word = wpk::load<uint32, 1>(reinterpret_cast<const uint32*>(row + chunk * Shape::kChunk))[0];
            }
        }
    }
};

} // namespace wpk
