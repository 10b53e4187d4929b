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
        // A few at a time: unrolled in full, their addresses would be kept in registers from step to step.
        constexpr int kPieces = 16 / CopyBytes, kItems = Rows * chunks * kPieces, kTogether = 4;
        WPK_KEEP_LOOP
        for (int begin = static_cast<int>(threadIdx.x); begin < kItems; begin += kTogether * Threads)
        {
            WPK_UNROLL
            for (int i = 0; i < kTogether; ++i)
            {
                const int item = begin + i * Threads, row = item / (chunks * kPieces);
                const int piece = item % (chunks * kPieces), column = piece * kPiece;
                if (item >= kItems)
                    break;
                const int columns = first + row < limit ? minOf(kPiece, Columns - column) : 0;
                const T* const at = columns > 0 ? source + place(first + row) * stride + column : source;
                copyAsync<CopyBytes>(tile + offset(row, piece / kPieces) + piece % kPieces * CopyBytes, at,
                    maxOf(columns, 0) * static_cast<int>(sizeof(T)));
            }
        }
    }
};

} // namespace wpk
