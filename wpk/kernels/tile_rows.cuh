// Rows of a matrix in shared memory, wider than the 128 bytes of a swizzled tile: panels side by side.
//
// Rows of Columns elements, zeros up to a multiple of 16 elements, so that every step of mmaTile and every pair of its
// tiles of eight columns is whole.
#pragma once

#include <wpk/kernels/async_copy.cuh>
#include <wpk/kernels/tile_shared.cuh>

namespace wpk
{

// Copies are of CopyBytes, 4, 8 or 16, as rows are aligned.
template <class T, int Rows, int Columns, int CopyBytes>
struct RowTile
{
    static constexpr int kChunk = 16 / sizeof(T);        // elements
    static constexpr int kPiece = CopyBytes / sizeof(T); // elements of a copy
    static constexpr int paddedColumns = ceilDivide(Columns, 16) * 16;
    static constexpr int chunks = paddedColumns / kChunk;
    static constexpr int panelChunks = chunks % 8 == 0 ? 8 : chunks % 4 == 0 ? 4 : 2;
    static constexpr int bytes = Rows * chunks * 16;
    using Panel = SwizzledTile<panelChunks * 16>;
    // Copies that are unrolled: of all of them, addresses would be kept in registers from step to step.
    static constexpr int kMostTogether = 4;

    // Byte offset of a chunk of 16 bytes.
    static WPK_DEVICE int offset(int row, int chunk)
    {
        return chunk / panelChunks * (Rows * panelChunks * 16) + Panel::offset(row, chunk % panelChunks);
    }

    // Starts copying rows [first, first + Rows) of a matrix, of which row r is that at `place(r)` of those at `source`,
    // `stride` elements apart and aligned to CopyBytes; those from `limit` on are zeros.
    template <int Threads, class Place>
    static WPK_DEVICE void copy(
        SharedAddress tile, const T* source, int64 stride, int first, int limit, const Place& place)
    {
        constexpr int kPieces = 16 / CopyBytes, kOfRow = chunks * kPieces;
        const auto start = [&](int row, int piece, SharedAddress target)
        {
            const int column = piece * kPiece, there = first + row < limit ? kPiece : 0;
            const int columns = Columns == paddedColumns ? there : minOf(there, maxOf(Columns - column, 0));
            // Where nothing is there, an address that could be read all the same.
            const int read = Columns == paddedColumns || column < Columns ? column : 0;
            copyAsync<CopyBytes>(target, source + place(minOf(first + row, limit - 1)) * stride + read,
                columns * static_cast<int>(sizeof(T)));
        };
        const auto targetOf = [&](int row, int piece)
        {
            return tile + offset(row, piece / kPieces) + piece % kPieces * CopyBytes;
        };
        const int thread = static_cast<int>(threadIdx.x);
        // The threads of whole periods of rows copy, where there are so many: each has the same place in all of its
        // rows, and their permutation is the same, so that their addresses differ by a constant.
        constexpr int kDown = Threads / kOfRow / Panel::kPeriod * Panel::kPeriod;
        if constexpr (kDown > 0)
        {
            if (Threads % (kDown * kOfRow) != 0 && thread >= kDown * kOfRow)
                return;
            constexpr int kCopies = ceilDivide(Rows, kDown), kTogether = minOf(kCopies, kMostTogether);
            const int top = thread / kOfRow, piece = thread % kOfRow;
            const SharedAddress target = targetOf(top, piece);
            WPK_KEEP_LOOP
            for (int begin = 0; begin < kCopies; begin += kTogether)
            {
                WPK_UNROLL
                for (int i = 0; i < kTogether; ++i)
                {
                    const int down = (begin + i) * kDown;
                    if ((kCopies % kTogether != 0 && begin + i >= kCopies) || (Rows % kDown != 0 && down + top >= Rows))
                        break;
                    start(down + top, piece, target + down * (panelChunks * 16)); // @row_below
                }
            }
        }
        else
        {
            constexpr int kItems = Rows * kOfRow;
            WPK_KEEP_LOOP
            for (int begin = thread; begin < kItems; begin += kMostTogether * Threads)
            {
                WPK_UNROLL
                for (int i = 0; i < kMostTogether; ++i)
                {
                    const int item = begin + i * Threads;
                    if (item >= kItems)
                        break;
                    start(item / kOfRow, item % kOfRow, targetOf(item / kOfRow, item % kOfRow));
                }
            }
        }
    }
};

} // namespace wpk
