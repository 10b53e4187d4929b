// Rows of a matrix in shared memory, wider than the 128 bytes of a swizzled tile: panels side by side.
//
// Rows of Columns elements, zeros up to a multiple of 16 elements, so that every step of mmaTile and every pair of its
// tiles of eight columns is whole.
#pragma once

#include <wpk/kernels/copies/async_copy.cuh>
#include <wpk/kernels/tiles/tile_shared.cuh>

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
        if constexpr (kRowsAtOnce<Threads> > 0)
            copySamePieces<Threads>(tile, source, stride, first, limit, place);
        else
            copyAnyPieces<Threads>(tile, source, stride, first, limit, place);
    }

private:
    static constexpr int kPieces = 16 / CopyBytes, kOfRow = chunks * kPieces;
    // Rows that threads copy at a time, in whole periods of the permutation; 0 where there are fewer threads.
    template <int Threads>
    static constexpr int kRowsAtOnce = Threads / kOfRow / Panel::kPeriod * Panel::kPeriod;

    // A thread has the same piece of rows that are whole periods of the permutation apart: what changes from one to the
    // next are constants. Addresses that are computed anew in the same registers wait until the copy before has read
    // them, some hundred cycles.
    template <int Threads, class Place>
    static WPK_DEVICE void copySamePieces(
        SharedAddress tile, const T* source, int64 stride, int first, int limit, const Place& place)
    {
        constexpr int kRows = kRowsAtOnce<Threads>, kTurns = ceilDivide(Rows, kRows);
        const int thread = static_cast<int>(threadIdx.x), own = thread / kOfRow, piece = thread % kOfRow;
        if (kRows * kOfRow != Threads && own >= kRows)
            return;
        // What is in front of the zeros that fill a row; of a piece of zeros alone, an address that could be read.
        constexpr bool kWhole = Columns == paddedColumns;
        const int columns = kWhole ? kPiece : maxOf(minOf(kPiece, Columns - piece * kPiece), 0);
        const T* const from = source + (kWhole || columns > 0 ? piece * kPiece : 0);
        const int bytes = columns * static_cast<int>(sizeof(T));
        const SharedAddress to = tile + offset(own, piece / kPieces) + piece % kPieces * CopyBytes;
        WPK_UNROLL
        for (int turn = 0; turn < kTurns; ++turn)
        {
            const int row = own + turn * kRows;
            if (Rows % kRows != 0 && row >= Rows)
                break;
            const int there = first + row < limit ? bytes : 0;
            const T* const at = from + place(minOf(first + row, limit - 1)) * stride;
            copyAsync<CopyBytes>(to + turn * (kRows * panelChunks * 16), at, there); // @row_below
        }
    }

    template <int Threads, class Place>
    static WPK_DEVICE void copyAnyPieces(
        SharedAddress tile, const T* source, int64 stride, int first, int limit, const Place& place)
    {
        // A few at a time: unrolled in full, their addresses would be kept in registers from step to step.
        constexpr int kItems = Rows * kOfRow, kTogether = 4;
        WPK_KEEP_LOOP
        for (int begin = static_cast<int>(threadIdx.x); begin < kItems; begin += kTogether * Threads)
        {
            SharedAddress to[kTogether];
            const T* from[kTogether];
            int bytes[kTogether];
            WPK_UNROLL
            for (int i = 0; i < kTogether; ++i)
            {
                const int item = begin + i * Threads, row = item / kOfRow, piece = item % kOfRow;
                const int column = piece * kPiece;
                const int columns = first + row < limit ? maxOf(minOf(kPiece, Columns - column), 0) : 0;
                bytes[i] = columns * static_cast<int>(sizeof(T));
                from[i] = columns > 0 ? source + place(first + row) * stride + column : source;
                to[i] = tile + offset(row, piece / kPieces) + piece % kPieces * CopyBytes;
            }
            WPK_UNROLL
            for (int i = 0; i < kTogether; ++i)
            {
                if (begin + i * Threads < kItems)
                    copyAsync<CopyBytes>(to[i], from[i], bytes[i]);
            }
        }
    }
};

} // namespace wpk
