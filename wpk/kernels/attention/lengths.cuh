// How many queries and keys a matrix of attention has: constants of the problem, or numbers that a launch passes.
//
// Where they are constants, tensors have a stride from one matrix to the next. Where they are passed there is none
// that is constant: matrices follow each other row by row, so that matrix m begins at row m * queries, or m * keys,
// and the leading stride is the one between rows. So it is where matrices are windows of images, whose rows have places
// of their own in it.
#pragma once

#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>

namespace wpk
{

// Queries, keys, values, the operands of the scores and those of the epilogue.
template <class Problem>
using AttentionInputs = Inputs<3 + Problem::Operands::count + Problem::EpilogueOperands::count>;

// Where a row of a matrix lies: along the leading axis of its tensor, and along its rows.
struct AttentionRowPlace
{
    int outer, row;

    // The element of a head at a column.
    template <class Tensor>
    WPK_DEVICE int64 offset(int head, int column) const
    {
        return Tensor::offset(outer, head, row, column);
    }
};

// What happens to V neighbours of a row of the result, `valid` of which exist, before they are stored.
template <class Problem, int V>
WPK_DEVICE void finishAttention(
    float (&values)[V], const void* const* inputs, int valid, const AttentionRowPlace& at, int head, int column)
{
    applyToRow<typename Problem::Epilogue, typename Problem::EpilogueOperands, V>(
        values, inputs + 3 + Problem::Operands::count, valid, at.outer, head, at.row, column); // @epilogue_place
}

// A block of rows of queries of one head.
struct AttentionPlace
{
    int matrix, head, block;
};

template <class Problem>
struct FixedLengths
{
    static WPK_DEVICE constexpr int queries()
    {
        return Problem::queries;
    }
    static WPK_DEVICE constexpr int keys()
    {
        return Problem::keys;
    }
    // What the scores' operands are indexed with along their leading axis.
    static WPK_DEVICE constexpr int firstKey(int matrix)
    {
        return matrix;
    }
    // Where Q, Y and the epilogue's operands, or K and V, have a row of a matrix: along the leading axis, and along
    // rows.
    static WPK_DEVICE constexpr AttentionRowPlace query(int matrix, int row)
    {
        return {matrix, row};
    }
    static WPK_DEVICE constexpr AttentionRowPlace key(int matrix, int row)
    {
        return {matrix, row};
    }

    // Block `index` of the blocks of Rows queries of all matrices.
    template <int Rows>
    static WPK_DEVICE AttentionPlace place(int64 index)
    {
        const Domain<Problem::wide, Problem::heads, ceilDivide(Problem::queries, Rows)> at(index);
        return {at.leading, at.at[0], at.at[1]};
    }
};

// Matrices are windows of images: Problem names their height and width, the windowRows and windowColumns of a window,
// whether its places lie `across` the image, and what it is rolled by, shiftRows and shiftColumns.
template <class Problem>
struct WindowedLengths : FixedLengths<Problem>
{
    static constexpr int kDown = Problem::height / Problem::windowRows;
    static constexpr int kRight = Problem::imageWidth / Problem::windowColumns, kWindows = kDown * kRight;

    static WPK_DEVICE AttentionRowPlace query(int matrix, int row)
    {
        const int window = matrix % kWindows;
        const int y = along<kDown, Problem::windowRows, Problem::height, Problem::shiftRows>(
            window / kRight, row / Problem::windowColumns);
        const int x = along<kRight, Problem::windowColumns, Problem::imageWidth, Problem::shiftColumns>(
            window % kRight, row % Problem::windowColumns);
        return {matrix / kWindows * (Problem::height * Problem::imageWidth), y * Problem::imageWidth + x};
    }
    static WPK_DEVICE AttentionRowPlace key(int matrix, int row)
    {
        return query(matrix, row);
    }

private:
    template <int Windows, int Size, int Extent, int Shift>
    static WPK_DEVICE int along(int window, int token)
    {
        const int at = (Problem::across ? token * Windows + window : window * Size + token) + Shift; // @window_place
        return at < Extent ? at : at - Extent;                                                       // @window_rolled
    }
};

template <class Problem>
class FreeLengths
{
public:
    WPK_DEVICE FreeLengths(int queries, int keys) : queries_(queries), keys_(keys) {}

    WPK_DEVICE int queries() const
    {
        return queries_;
    }
    WPK_DEVICE int keys() const
    {
        return keys_;
    }
    WPK_DEVICE int firstKey(int matrix) const
    {
        return matrix * keys_; // @first_key
    }
    WPK_DEVICE AttentionRowPlace query(int matrix, int row) const
    {
        return {matrix * queries_, row}; // @first_query
    }
    WPK_DEVICE AttentionRowPlace key(int matrix, int row) const
    {
        return {firstKey(matrix), row};
    }

    template <int Rows>
    WPK_DEVICE AttentionPlace place(int64 index) const
    {
        const int blocks = (queries_ - 1) / Rows + 1;
        const int64 rest = index / blocks;
        return {static_cast<int>(rest / Problem::heads), static_cast<int>(rest % Problem::heads),
            static_cast<int>(index - rest * blocks)};
    }

private:
    int queries_, keys_;
};

} // namespace wpk
