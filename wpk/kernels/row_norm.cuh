// Normalises the rows of a matrix product behind it: scale * (a * b - mean * sums), with the sums of b's columns.
//
// Mean and variance of a row come from the fragments of A that the product multiplies, in fp32. What is summed are
// differences from the mean of the row's first 16 elements: the sum of their squares is at most K / 16 + 1 times that
// of the differences from the row's own mean, so that no row loses its variance to its mean. An RMS norm has no mean.
#pragma once

#include <wpk/kernels/number.cuh>
#include <wpk/kernels/operands.cuh>
#include <wpk/kernels/output_window.cuh>
#include <wpk/kernels/prefetch.cuh>
#include <wpk/kernels/vector.cuh>
#include <wpk/kernels/warp.cuh>

namespace wpk
{

// What a row is normalised by.
struct RowScale
{
    float mean, scale;
};

// The moments of a warp's 16 rows. A lane has those of two, lane / 4 and 8 further down, as of accumulators in layout D
// of mma.cuh; the four lanes of a row have parts of it. T: Half or Bfloat16. Depth: elements of a row.
template <class T, bool Centred, int Depth>
class RowMoments
{
public:
    // The fragment of A (mma.cuh) that rows begin with; all lanes call it before they add that and the others.
    WPK_DEVICE void begin(const uint32 (&fragment)[4])
    {
        if constexpr (Centred)
        {
            WPK_UNROLL
            for (int row = 0; row < 2; ++row)
            {
                float sum = 0.0f;
                WPK_UNROLL
                for (int element = 0; element < 4; ++element)
                    sum += isInside(0, element) ? valueOf(fragment, row, element) : 0.0f;
                shift_[row] = ofQuad(sum) * (1.0f / minOf(Depth, 16)); // @rows_shifted
            }
        }
    }

    // The fragment of 16 elements from `first` on. Whole: all of them are elements of the rows.
    template <bool Whole>
    WPK_DEVICE void add(const uint32 (&fragment)[4], int first)
    {
        WPK_UNROLL
        for (int element = 0; element < 4; ++element)
        {
            const bool isAdded = Whole || isInside(first, element); // @row_ends
            WPK_UNROLL
            for (int row = 0; row < 2; ++row)
            {
                const float value = valueOf(fragment, row, element);
                const float difference = isAdded ? value - shift_[row] : 0.0f;
                if (Centred)
                    sum_[row] += difference;
                squares_[row] += difference * difference;
            }
        }
    }

    // What both rows are normalised by; all lanes call it.
    WPK_DEVICE void finish(RowScale (&rows)[2], float epsilon) const
    {
        rows[0] = scale(0, epsilon);
        rows[1] = scale(1, epsilon);
    }

private:
    WPK_DEVICE RowScale scale(int row, float epsilon) const
    {
        constexpr float kOne = 1.0f / Depth;
        const float mean = Centred ? ofQuad(sum_[row]) * kOne : 0.0f;
        const float variance = ofQuad(squares_[row]) * kOne - mean * mean;
        return {shift_[row] + mean, reciprocalRoot(larger(variance, 0.0f) + epsilon)};
    }
    // Whether element 0..3 of a lane in a fragment is one of the rows.
    static WPK_DEVICE bool isInside(int first, int element)
    {
        const int eighth = first + element / 2 * 8;
        return Depth % 8 == 0 ? eighth < Depth : eighth + laneIndex() % 4 * 2 + element % 2 < Depth;
    }
    static WPK_DEVICE float valueOf(const uint32 (&fragment)[4], int row, int element)
    {
        const uint32 word = fragment[element / 2 * 2 + row];
        return element % 2 == 0 ? unpackLow<T>(word) : unpackHigh<T>(word);
    }
    static WPK_DEVICE float ofQuad(float value)
    {
        const float pair = value + shuffleXor(value, 1);
        return pair + shuffleXor(pair, 2);
    }

    float shift_[2] = {}, sum_[2] = {}, squares_[2] = {};
};

// Rows are multiplied as they are.
struct RawRows
{
    template <class Rows>
    WPK_DEVICE explicit RawRows(const OutputWindow<Rows>&)
    {
    }
    RawRows() = default;
    static constexpr int kTogether = 4;
    template <class Tile>
    WPK_DEVICE void bring(const Tile&, int)
    {
    }
    WPK_DEVICE void add(int, int) {}
    template <class Step>
    WPK_DEVICE void look(const Step&, int)
    {
    }
    WPK_DEVICE void finish() {}
    template <class Products>
    WPK_DEVICE void normalise(Products&) const
    {
    }
};

// Whether the rows of a product are normalised: its unit says row_epsilon, the bits of a float, and row_is_centred.
template <class Problem>
inline constexpr bool kNormsRows = requires { Problem::row_epsilon; };

namespace detail
{

template <class Problem>
WPK_DEVICE constexpr int rowNormInputs()
{
    if constexpr (kNormsRows<Problem>)
        return Problem::row_is_centred ? 1 : 0;
    return 0;
}

} // namespace detail

// How many inputs hold sums of columns; they follow the operands of the epilogue.
template <class Problem>
inline constexpr int kRowNormInputs = detail::rowNormInputs<Problem>();

// The sums of b's columns.
template <class Problem, class Rows>
WPK_DEVICE const float* columnSums(const OutputWindow<Rows>& window)
{
    return static_cast<const float*>(window.operands[Problem::Operands::count]);
}

// Asks for those of a tile's columns; all threads of the block may call it.
template <class Problem, int BlockN, class Rows>
WPK_DEVICE void prefetchColumnSums(const OutputWindow<Rows>& window)
{
    if constexpr (kRowNormInputs<Problem> != 0)
    {
        constexpr int kOfSector = kSectorBytes / 4;
        const int thread = static_cast<int>(threadIdx.x), column = window.firstColumn + thread * kOfSector;
        const bool isRead = thread < ceilDivide(BlockN, kOfSector) && column < window.columnEnd;
        prefetchConstant(isRead ? columnSums<Problem>(window) + column : nullptr);
    }
}

// The sums of a lane's columns, of Tiles tiles of products in layout D of mma.cuh, the first of which begins with
// `window`. Without a mean there are none.
template <class Problem, int Tiles>
class ColumnSums
{
public:
    template <class Rows>
    WPK_DEVICE void load(const OutputWindow<Rows>& window)
    {
        if constexpr (Problem::row_is_centred)
        {
            const int column = window.firstColumn + laneIndex() % 4 * 2;
            const float* const at = columnSums<Problem>(window) + column;
            WPK_UNROLL
            for (int tile = 0; tile < Tiles; ++tile)
            {
                const int left = window.columnEnd - column - tile * 8;
                if constexpr (Problem::n % 2 == 0)
                {
                    sums_[tile] = left > 0 ? wpk::load<float, 2>(at + tile * 8) : zeroVector<float, 2>();
                }
                else
                {
                    sums_[tile] = {left > 0 ? at[tile * 8] : 0.0f, left > 1 ? at[tile * 8 + 1] : 0.0f};
                }
            }
        }
    }

    // The products of a warp's 16 rows as those of normalised rows.
    WPK_DEVICE void apply(float (&products)[Tiles][4], const RowScale (&rows)[2]) const
    {
        WPK_UNROLL
        for (int tile = 0; tile < Tiles; ++tile)
        {
            WPK_UNROLL
            for (int place = 0; place < 4; ++place)
            {
                float& product = products[tile][place];
                const RowScale row = rows[place / 2];
                if constexpr (Problem::row_is_centred)
                    product -= row.mean * sums_[tile][place % 2]; // @mean_taken
                product *= row.scale;
            }
        }
    }

private:
    Vector<float, 2> sums_[Problem::row_is_centred ? Tiles : 1] = {};
};

} // namespace wpk
