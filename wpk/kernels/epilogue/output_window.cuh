// The part of the output that a block, or one of its warps, stores.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// What a kernel writes: its output and, if it has them, the moments of its rows (row_moments.cuh).
struct Outputs
{
    WPK_DEVICE Outputs(void* to, void* ofRows = nullptr) : y(to), moments(static_cast<float*>(ofRows)) {}
    void* y;
    float* moments;
};

// The window begins at (firstRow, firstColumn) and ends where the output does. Rows turns a row into its place in a
// tensor (PixelRows, MatrixRows of epilogue.cuh; OutputTile).
template <class Rows>
struct OutputWindow
{
    Rows rows;
    const void* const* operands; // of the epilogue
    void* y;
    int rowEnd;                   // of the rows that are stored
    int columnEnd, storedColumns; // of the columns that exist, and of those that are written: y's padding is between
    int firstRow = 0, firstColumn = 0;
    float* moments = nullptr; // of the rows that are stored, if they are

    // The window that begins there.
    WPK_DEVICE OutputWindow at(int row, int column) const
    {
        OutputWindow window = *this;
        window.firstRow = row;
        window.firstColumn = column;
        return window;
    }

    // The window that begins so many rows and columns further on.
    WPK_DEVICE OutputWindow from(int row, int column) const
    {
        OutputWindow window = *this;
        window.firstRow += row;
        window.firstColumn += column;
        return window;
    }
};

// Whether a row is stored: below the limit, unless its map has another rule (output_tile.cuh).
template <class Rows>
WPK_DEVICE bool isRowStored(const Rows&, int row, int limit)
{
    return row < limit;
}

template <class Rows>
OutputWindow(Rows, const void* const*, void*, int, int, int, int, int) -> OutputWindow<Rows>;
template <class Rows>
OutputWindow(Rows, const void* const*, void*, int, int, int) -> OutputWindow<Rows>;

} // namespace wpk
