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
    // `stride` elements apart and aligned to CopyBytes; those from `limit`, which is 1 or more, on are zeros.
    //
    // Where rows are shared among the threads evenly, a thread copies one piece of rows that are a constant number
    // apart: most of their addresses is computed once.
    template <int Threads, class Place>
    static WPK_DEVICE void copy(
        SharedAddress tile, const T* source, int64 stride, int first, int limit, const Place& place)
    {
        constexpr int kOfRow = chunks * (16 / CopyBytes);
        if constexpr (Threads % kOfRow == 0)
        {
            constexpr int kApart = Threads / kOfRow;
            const int own = static_cast<int>(threadIdx.x) / kOfRow, piece = static_cast<int>(threadIdx.x) % kOfRow;
            // A few at a time: unrolled in full, their addresses would be kept in registers from step to step.
            constexpr int kTogether = minOf(ceilDivide(Rows, kApart), 4);
            WPK_KEEP_LOOP
            for (int begin = 0; begin < Rows; begin += kTogether * kApart)
            {
                WPK_UNROLL
                for (int i = 0; i < kTogether; ++i)
                {
                    const int row = begin + i * kApart + own;
                    if (Rows % (kTogether * kApart) == 0 || row < Rows)
                        copyPiece(tile, source, stride, row, piece, first, limit, place);
                }
            }
        }
        else
        {
            WPK_KEEP_LOOP
            for (int item = static_cast<int>(threadIdx.x); item < Rows * kOfRow; item += Threads)
                copyPiece(tile, source, stride, item / kOfRow, item % kOfRow, first, limit, place);
        }
    }

private:
    template <class Place>
    static WPK_DEVICE void copyPiece(SharedAddress tile, const T* source, int64 stride, int row, int piece, int first,
        int limit, const Place& place)
    {
        constexpr int kPieces = 16 / CopyBytes;
        const int column = piece * kPiece, columns = maxOf(minOf(kPiece, Columns - column), 0);
        const bool exists = first + row < limit;
        // What does not exist is not read, but has the address of something that is.
        const T* const at = source + place(minOf(first + row, limit - 1)) * stride + (columns > 0 ? column : 0);
        copyAsync<CopyBytes>(tile + offset(row, piece / kPieces) + piece % kPieces * CopyBytes, at,
            exists ? columns * static_cast<int>(sizeof(T)) : 0);
    }
};

} // namespace wpk
