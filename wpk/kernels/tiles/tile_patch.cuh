// The patch of an image that a tile of output pixels reads, in shared memory, so that ldmatrix takes rows of the
// implicit matrix product straight from it: for images of at most four channels.
//
// A pixel is 4 channels, zero where there are fewer; a chunk is 16 bytes, kTaps neighbouring pixels. The reduction
// runs over chunks: for each row of the filter, chunks of kTaps taps, the last one perhaps cut. A chunk of the patch is
// thus, for one output pixel, 16 bytes of its row of the matrix. For neighbouring output pixels it lies kApart chunks
// further on, so chunks are dealt out to kApart rows of neighbours: eight of them are then 128 bytes, all banks.
//
// Chunks begin kStep pixels apart. Where the stride is a multiple of kTaps, windows begin at whole chunks and a pixel
// lies in one; else a chunk begins at every pixel, and a pixel lies in kTaps of them.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/epilogue/output_tile.cuh>
#include <wpk/kernels/mma/mma.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

constexpr int kPatchChannels = 4, kChunkBytes = 16;

// Where the patch of Schedule::tile_p x tile_q output pixels lies, in elements of T.
template <class T, class Problem, class Schedule>
struct Patch
{
    static constexpr int kTaps = kChunkBytes / (kPatchChannels * static_cast<int>(sizeof(T)));
    static constexpr int kChunksARow = ceilDivide(Problem::filter_w, kTaps);
    static constexpr int kChunks = Problem::filter_h * kChunksARow;
    static constexpr int kStep = Problem::stride_w % kTaps == 0 ? kTaps : 1;
    static constexpr int kApart = Problem::stride_w / kStep;
    static constexpr int kTapStep = kTaps / kStep; // from a chunk of the filter's row to the next
    static constexpr int kPositions = (Schedule::tile_q - 1) * kApart + (kChunksARow - 1) * kTapStep + 1;
    static constexpr int kNeighbours = ceilDivide(kPositions, kApart);
    static constexpr int kRowBytes = kApart * kNeighbours * kChunkBytes;
    static constexpr int kRows = (Schedule::tile_p - 1) * Problem::stride_h + Problem::filter_h;
    static constexpr int kPixels = (Schedule::tile_q - 1) * Problem::stride_w + kChunksARow * kTaps; // of a row
    static constexpr int kBytes = kRows * kRowBytes;

    // Byte offset of the chunk that begins at pixel `position` * kStep of a row.
    static WPK_DEVICE constexpr int offset(int row, int position)
    {
        return row * kRowBytes + (position % kApart * kNeighbours + position / kApart) * kChunkBytes;
    }

    // Byte offset of the output pixel (p, q) of the tile, under the filter's first chunk.
    static WPK_DEVICE constexpr int pixelOffset(int p, int q)
    {
        return p * Problem::stride_h * kRowBytes + q * kChunkBytes;
    }

    // What is added to it under another chunk of the filter.
    static WPK_DEVICE constexpr int chunkOffset(int chunk)
    {
        return offset(chunk / kChunksARow, chunk % kChunksARow * kTapStep);
    }

    // How many taps of a chunk of the filter there are; 0 behind the last chunk.
    static WPK_DEVICE constexpr int taps(int chunk)
    {
        return chunk < kChunks ? minOf(kTaps, Problem::filter_w - chunk % kChunksARow * kTaps) : 0;
    }
};

// Brings a patch from an image of any strides and type to shared memory, converted for products of type Multiply.
// Between begin() and finish() it lies in registers. Neighbouring threads take neighbouring pixels of a row.
template <class Multiply, class PatchOf, class Problem, class Stored, int Threads>
class PatchLoader
{
    using X = typename Problem::X;
    static constexpr int V = Problem::x_vector;
    static constexpr int kVectors = ceilDivide(Problem::c, V);
    static constexpr int kItems = PatchOf::kRows * PatchOf::kPixels;
    static constexpr int kCount = ceilDivide(kItems, Threads);
    static_assert(Problem::c <= kPatchChannels && V <= kPatchChannels, "an image has at most four channels");
    static_assert(V == 1 || Problem::x_c == 1, "vectors need contiguous channels");
    static_assert(Problem::x_h * Problem::h + Problem::x_w * Problem::w + Problem::x_c * Problem::c < (int64(1) << 31),
        "an image fits 32-bit offsets");

public:
    static constexpr int kHeld = kCount * Problem::c; // values that a thread holds

    explicit WPK_DEVICE PatchLoader(const void* x) : x_(static_cast<const X*>(x)) {}

    template <class Tile>
    WPK_DEVICE void begin(const Tile& tile)
    {
        const X* const image = x_ + tile.image * Problem::x_n;
        const int top = tile.p * Problem::stride_h - Problem::pad_h;
        const int left = tile.q * Problem::stride_w - Problem::pad_w;
        WPK_UNROLL
        for (int i = 0; i < kCount; ++i)
        {
            const uint32 item = itemOf(i);
            const int h = top + static_cast<int>(item / PatchOf::kPixels);
            const int w = left + static_cast<int>(item % PatchOf::kPixels);
            const bool exists = (kItems % Threads == 0 || item < kItems)
                                && static_cast<uint32>(h) < static_cast<uint32>(Problem::h)
                                && static_cast<uint32>(w) < static_cast<uint32>(Problem::w);
            const int offset = h * static_cast<int>(Problem::x_h) + w * static_cast<int>(Problem::x_w);
            WPK_UNROLL
            for (int v = 0; v < kVectors; ++v)
            {
                values_[i][v] = zeroVector<X, V>();
                if (exists)
                    values_[i][v] = load<X, V>(image + offset + v * V * static_cast<int>(Problem::x_c));
            }
        }
    }

    WPK_DEVICE void finish(unsigned char* patch) const
    {
        WPK_UNROLL
        for (int i = 0; i < kCount; ++i)
        {
            const uint32 item = itemOf(i);
            if (kItems % Threads == 0 || item < kItems)
                put(patch, static_cast<int>(item / PatchOf::kPixels), static_cast<int>(item % PatchOf::kPixels), i);
        }
    }

private:
    static WPK_DEVICE uint32 itemOf(int i)
    {
        return threadIdx.x + static_cast<uint32>(i * Threads);
    }

    // Item i to all chunks that hold it.
    WPK_DEVICE void put(unsigned char* patch, int row, int column, int i) const
    {
        auto pixel = zeroVector<Stored, kPatchChannels>();
        WPK_UNROLL
        for (int c = 0; c < Problem::c; ++c)
            pixel[c] = convert(values_[i][c / V][c % V]);
        WPK_UNROLL
        for (int place = 0; place < PatchOf::kTaps; ++place)
        {
            const int begin = column - place;
            const int position = begin / PatchOf::kStep;
            if (begin >= 0 && begin % PatchOf::kStep == 0 && position < PatchOf::kPositions)
            {
                unsigned char* const chunk = patch + PatchOf::offset(row, position);
                store<Stored, kPatchChannels>(reinterpret_cast<Stored*>(chunk) + place * kPatchChannels, pixel);
            }
        }
    }

    static WPK_DEVICE Stored convert(X value)
    {
        if constexpr (isSame<Multiply, Tf32>)
        {
            return asFloat(roundToTf32(toFloat(value)));
        }
        else if constexpr (isSame<X, Stored>)
        {
            return value;
        }
        else
        {
            return fromFloat<Stored>(toFloat(value));
        }
    }

    const X* x_;
    Vector<X, V> values_[kCount][kVectors];
};

} // namespace wpk
