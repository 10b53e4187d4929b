// Tiles in shared memory for ldmatrix: rows of 16-byte chunks whose order is permuted from row to row, so that the
// eight rows of a matrix, at one chunk, lie in different banks.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// Where chunks of a tile with rows of RowBytes lie. The permutation repeats every kPeriod rows.
template <int RowBytes>
struct SwizzledTile
{
    static_assert(RowBytes >= 16 && (RowBytes & (RowBytes - 1)) == 0, "rows are a power of two of chunks");
    static constexpr int kChunks = RowBytes / 16;
    static constexpr int kPeriod = 8;
    static constexpr int kRowsALine = kChunks < 8 ? 8 / kChunks : 1; // a line is the 128 bytes of all banks
    static constexpr int kMask = (kChunks < 8 ? kChunks : 8) - 1;

    // What is xor-ed to the chunk's number in this row.
    static WPK_DEVICE int pattern(int row)
    {
        return row / kRowsALine & kMask;
    }

    // Byte offset of a chunk.
    static WPK_DEVICE int offset(int row, int chunk)
    {
        return row * RowBytes + (chunk ^ pattern(row)) * 16;
    }
};

} // namespace wpk
