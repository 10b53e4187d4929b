// Loaders that fill swizzled tiles by asynchronous copies. The source's elements are those of the tile.
//
// All loaders have begin(stage), which starts loading the next tile, and finish(stage), called
// after the computation that hides the latency; here begin does it all.
#pragma once

#include <wpk/kernels/copies/async_copy.cuh>
#include <wpk/kernels/tiles/tile_shared.cuh>
#include <wpk/kernels/tiles/tile_source.cuh>

namespace wpk
{

// A tile of Rows rows of RowBytes, rows of the tile being rows of the source and its columns advancing by
// one row's length from tile to tile; copies of CopyBytes (4, 8 or 16).
template <class Source, int Rows, int RowBytes, int Threads, int CopyBytes>
class AsyncLoader
{
    using T = typename Source::Type;
    static constexpr int kVector = CopyBytes / sizeof(T);
    static constexpr int kCopiesARow = RowBytes / CopyBytes;
    static constexpr int kRowStep = Threads / kCopiesARow;
    static constexpr int kCount = ceilDivide(Rows, kRowStep);
    using Tile = SwizzledTile<RowBytes>;

public:
    static constexpr bool kAsynchronous = true; // begin() leaves nothing to finish()

    // The first tile begins at row `firstRow` and column `firstColumn` of the source.
    WPK_DEVICE AsyncLoader(const Source& source, int firstRow, int firstColumn)
        : source_(source),
          row_(static_cast<int>(threadIdx.x) / kCopiesARow),
          byte_(static_cast<int>(threadIdx.x) % kCopiesARow * CopyBytes),
          column_(source.column(firstColumn + byte_ / static_cast<int>(sizeof(T))))
    {
        WPK_UNROLL
        for (int i = 0; i < kCount; ++i)
            rows_[i] = source_.row(firstRow + row_ + i * kRowStep);
    }

    WPK_DEVICE void begin(unsigned char* stage)
    {
        const SharedAddress tile = sharedAddress(stage);
        WPK_UNROLL
        for (int i = 0; i < kCount; ++i)
        {
            const int row = row_ + i * kRowStep;
            if (Rows % kRowStep == 0 || row < Rows)
            {
                const T* address;
                const int valid = source_.template locate<kVector>(rows_[i], column_, address);
                copyAsync<CopyBytes>(tile + target(i), address, valid * static_cast<int>(sizeof(T)));
            }
        }
        source_.advance(column_, RowBytes / static_cast<int>(sizeof(T)));
    }

    WPK_DEVICE void finish(unsigned char*) {}

private:
    WPK_DEVICE int target(int i) const
    {
        if constexpr (kRowStep % Tile::kPeriod == 0)
        {
            return Tile::offset(row_, byte_ / 16) + byte_ % 16 + i * kRowStep * RowBytes;
        }
        else
        {
            return Tile::offset(row_ + i * kRowStep, byte_ / 16) + byte_ % 16;
        }
    }

    Source source_;
    int row_, byte_;
    typename Source::Column column_;
    typename Source::Row rows_[kCount];
};

// The same for an operand that is contiguous across the reduction: rows of the tile are positions of the
// reduction, and it is the rows that advance, by Depth from tile to tile.
template <class Source, int Depth, int RowBytes, int Threads, int CopyBytes>
class AsyncDepthLoader
{
    using T = typename Source::Type;
    static constexpr int kVector = CopyBytes / sizeof(T);
    static constexpr int kCopies = Depth * RowBytes / CopyBytes;
    using Tile = SwizzledTile<RowBytes>;

public:
    static constexpr bool kAsynchronous = true; // begin() leaves nothing to finish()

    // The first tile begins at column `firstColumn` and row `firstRow` of the source.
    WPK_DEVICE AsyncDepthLoader(const Source& source, int firstColumn, int firstRow)
        : source_(source), firstColumn_(firstColumn), depth_(firstRow)
    {
    }

    WPK_DEVICE void begin(unsigned char* stage)
    {
        const SharedAddress tile = sharedAddress(stage);
        WPK_UNROLL
        for (int i = 0; i < ceilDivide(kCopies, Threads); ++i)
        {
            const int copy = static_cast<int>(threadIdx.x) + i * Threads;
            if (kCopies % Threads == 0 || copy < kCopies)
            {
                const int row = copy / (RowBytes / CopyBytes), byte = copy % (RowBytes / CopyBytes) * CopyBytes;
                const T* address;
                const auto column = source_.column(firstColumn_ + byte / static_cast<int>(sizeof(T)));
                const int valid = source_.template locate<kVector>(source_.row(depth_ + row), column, address);
                copyAsync<CopyBytes>(
                    tile + Tile::offset(row, byte / 16) + byte % 16, address, valid * static_cast<int>(sizeof(T)));
            }
        }
        depth_ += Depth;
    }

    WPK_DEVICE void finish(unsigned char*) {}

private:
    Source source_;
    int firstColumn_, depth_;
};

} // namespace wpk
