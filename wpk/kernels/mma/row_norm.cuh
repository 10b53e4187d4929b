// Normalises the rows of a matrix product behind it: scale * (a * b - mean * sums), with the sums of b's columns.
//
// Mean and variance of a row come from moments that a kernel in front has stored (row_moments.cuh), or from the
// fragments of A that the product multiplies. Then tensor cores add what they are
// computed from, in fp32: elements times 1, and times themselves, which are the diagonal of a product of the rows by
// the same rows. A row whose first 16 elements have a mean of more than two deviations is shifted by it: so the sum of
// squares is at most K + 1 times that of the differences from the row's own mean, and no row loses its variance to its
// mean. A shift has four bits: differences are exact in 16 bits but for those that are larger than their elements,
// which are rounded. An RMS norm has no mean, and its rows no shift.
#pragma once

#include <wpk/kernels/copies/prefetch.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/epilogue/output_window.cuh>
#include <wpk/kernels/mma/mma.cuh>
#include <wpk/kernels/numbers/number.cuh>
#include <wpk/kernels/operands/operands.cuh>
#include <wpk/kernels/sums/row_moments.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

// What a row is normalised by.
struct RowScale
{
    float mean, scale;
};

namespace detail
{

// Of two values each, a * factor + addend, rounded once.
template <class T>
WPK_DEVICE uint32 multiplyAdd2(uint32 a, uint32 factor, uint32 addend)
{
#if WPK_ON_GPU
    uint32 sum;
    if constexpr (isSame<T, Half>)
        asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(factor), "r"(addend));
    else
        asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(factor), "r"(addend));
    return sum;
#else
    const double low = double(unpackLow<T>(a)) * unpackLow<T>(factor) + unpackLow<T>(addend);
    const double high = double(unpackHigh<T>(a)) * unpackHigh<T>(factor) + unpackHigh<T>(addend);
    return fromDouble<T>(low).bits | static_cast<uint32>(fromDouble<T>(high).bits) << 16;
#endif
}

template <class T>
WPK_DEVICE uint32 twice(float value)
{
    return pack2<T>(value, value);
}

} // namespace detail

// The moments of a warp's 16 rows. A lane has those of two, lane / 4 and 8 further down, as of accumulators in layout D
// of mma.cuh. T: Half or Bfloat16. Depth: elements of a row.
template <class T, bool Centred, int Depth>
class RowMoments
{
public:
    // The fragment of A (mma.cuh) that rows begin with; all lanes call it before they add that and the others.
    WPK_DEVICE void begin(const uint32 (&fragment)[4])
    {
        WPK_UNROLL
        for (int row = 0; Centred && row < 2; ++row)
        {
            float sum = 0.0f, squares = 0.0f; // what is outside of the rows is 0
            WPK_UNROLL
            for (int word = row; word < 4; word += 2)
            {
                const float low = unpackLow<T>(fragment[word]), high = unpackHigh<T>(fragment[word]);
                sum += low + high;
                squares += low * low + high * high;
            }
            const float mean = ofQuad(sum) * kOneOfFirst;
            const bool shifts = 1.25f * mean * mean > ofQuad(squares) * kOneOfFirst; // @rows_shifted
            const float shift = shifts ? asFloat((asUint32(mean) + 0x00080000u) & 0xfff00000u) : 0.0f;
            factor_[row] = detail::twice<T>(shifts ? 0.5f : 1.0f);
            addend_[row] = detail::twice<T>(-0.5f * shift);
        }
    }

    // The fragment of 16 elements from `first` on. Whole: all of them are elements of the rows; others are 0.
    template <bool Whole>
    WPK_DEVICE void add(const uint32 (&fragment)[4], int first)
    {
        uint32 shifted[1][4];
        WPK_UNROLL
        for (int word = 0; word < 4; ++word)
        {
            shifted[0][word] = fragment[word];
            if constexpr (Centred)
            {
                const uint32 difference = detail::multiplyAdd2<T>(fragment[word], factor_[word % 2], addend_[word % 2]);
                shifted[0][word] = difference & (Whole ? ~0u : inside(first + word / 2 * 8)); // @row_ends
            }
        }
        // A fragment of B has rows where columns lie: the upper and the lower ones.
        mmaTile(T{}, squares_, shifted, {{shifted[0][0], shifted[0][2]}, {shifted[0][1], shifted[0][3]}});
        if constexpr (Centred)
        {
            const uint32 ones = detail::twice<T>(1.0f);
            mmaTile(T{}, sums_, reinterpret_cast<const uint32(&)[1][4]>(fragment), {{ones, ones}});
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
        const int group = laneIndex() / 4; // also the column of the diagonal
        const float own = group % 2 == 0 ? squares_[0][row][row * 2] : squares_[0][row][row * 2 + 1];
        const float squares = ofQuad(group / 2 == laneIndex() % 4 ? own : 0.0f) * kOne; // @diagonal_taken
        if constexpr (Centred)
        {
            const float mean = sums_[0][0][row * 2] * kOne, factor = unpackLow<T>(factor_[row]);
            const float shifted = fmaf(factor, mean, unpackLow<T>(addend_[row]));
            const float variance = (squares - shifted * shifted) / (factor * factor);
            return {mean, reciprocalRoot(larger(variance, 0.0f) + epsilon)};
        }
        else
        {
            return {0.0f, reciprocalRoot(squares + epsilon)};
        }
    }
    // The bits of a lane's two elements, of eight from `eighth` on, that are elements of the rows.
    static WPK_DEVICE uint32 inside(int eighth)
    {
        const int left = Depth - eighth - (Depth % 8 == 0 ? 0 : laneIndex() % 4 * 2);
        return left >= 2 ? ~0u : left == 1 ? 0xffffu : 0u;
    }
    static WPK_DEVICE float ofQuad(float value)
    {
        const float pair = value + shuffleXor(value, 1);
        return pair + shuffleXor(pair, 2);
    }

    static constexpr float kOneOfFirst = 1.0f / minOf(Depth, 16);

    uint32 factor_[2] = {}, addend_[2] = {}; // of shifted rows 1/2, so that no difference overflows, and -1/2 the shift
    float squares_[1][2][4] = {}, sums_[1][1][4] = {};
};

// Sums as they are.
struct RawSums
{
    template <class Number>
    WPK_DEVICE float of(float sum, int, const Number*) const
    {
        return sum;
    }
};

// Rows are multiplied as they are.
struct RawRows
{
    template <class Rows>
    WPK_DEVICE explicit RawRows(const OutputWindow<Rows>&)
    {
    }
    RawRows() = default;
    WPK_DEVICE RawSums scaled(int) const
    {
        return {};
    }
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
    WPK_DEVICE void normalise(Products&, int) const
    {
    }
};

// Whether the rows of a product are normalised: its unit says row_epsilon, the bits of a float, and row_is_centred.
template <class Problem>
inline constexpr bool kNormsRows = requires { Problem::row_epsilon; };

// Whether a kernel in front has stored the moments of these rows: the unit names their place in memory, GivenMoments.
template <class Problem>
inline constexpr bool kTakesMoments = requires { typename Problem::GivenMoments; };

namespace detail
{

template <class Problem>
WPK_DEVICE constexpr int rowNormInputs()
{
    if constexpr (kNormsRows<Problem>)
        return (Problem::row_is_centred ? 1 : 0) + (kTakesMoments<Problem> ? 1 : 0);
    return 0;
}

} // namespace detail

// How many inputs hold sums of columns, and behind them moments of rows; they follow the operands of the epilogue.
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
    if constexpr (kRowNormInputs<Problem> > (kTakesMoments<Problem> ? 1 : 0))
    {
        constexpr int kOfSector = kSectorBytes / 4;
        const int thread = static_cast<int>(threadIdx.x), column = window.firstColumn + thread * kOfSector;
        const bool isRead = thread < ceilDivide(BlockN, kOfSector) && column < window.columnEnd;
        prefetchConstant(isRead ? columnSums<Problem>(window) + column : nullptr);
    }
}

// What a lane's two rows are normalised by, as of accumulators in layout D of mma.cuh: `first` is the upper one. All
// lanes of a warp call it, behind whatever waits for the kernel in front.
template <class Problem, class Rows>
WPK_DEVICE void scaleByMoments(RowScale (&rows)[2], const OutputWindow<Rows>& window, int first)
{
    using Moments = typename Problem::GivenMoments;
    constexpr int kPlace = Problem::Operands::count + (Problem::row_is_centred ? 1 : 0);
    const auto* const moments = static_cast<const float*>(window.operands[kPlace]);
    WPK_UNROLL
    for (int i = 0; i < 2; ++i)
    {
        const int row = first + i * 8; // @row_of_moments
        const bool isThere = row < window.rowEnd;
        float square;
        mergeMoments<Moments::width, Problem::k / momentsGroup(Problem::k)>(
            isThere ? moments + window.rows.template offset<Moments>(row) : nullptr, rows[i].mean, square);
        rows[i].scale = isThere ? reciprocalRoot(square + asFloat(Problem::row_epsilon)) : 0.0f;
    }
}

// A sum of products as that of a normalised row, by the sum of b's column; or a part of one, of which the first loses
// the mean.
template <class Problem>
WPK_DEVICE float scaledSum(float sum, const RowScale& row, float ofColumn, int part)
{
    if constexpr (Problem::row_is_centred)
        sum -= (part == 0 ? row.mean : 0.0f) * ofColumn; // @mean_taken
    return sum * row.scale;
}

// A lane's sums of two rows as those of normalised ones; the sum of b's column stands behind the operands of the
// epilogue.
template <class Problem>
struct ScaledSums
{
    const RowScale (&rows)[2];

    template <class Number>
    WPK_DEVICE float of(float sum, int row, const Number* ofColumn) const
    {
        const float ofB = Problem::row_is_centred ? ofColumn[Problem::Operands::count] : 0.0f;
        return scaledSum<Problem>(sum, rows[row], ofB, 0);
    }
};

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

    // The products of a warp's 16 rows as those of normalised rows; or a part of them, of which the first loses the
    // mean.
    WPK_DEVICE void apply(float (&products)[Tiles][4], const RowScale (&rows)[2], int part) const
    {
        WPK_UNROLL
        for (int tile = 0; tile < Tiles; ++tile)
        {
            WPK_UNROLL
            for (int place = 0; place < 4; ++place)
            {
                float& product = products[tile][place];
                const float ofColumn = Problem::row_is_centred ? sums_[tile][place % 2] : 0.0f;
                product = scaledSum<Problem>(product, rows[place / 2], ofColumn, part);
            }
        }
    }

private:
    Vector<float, 2> sums_[Problem::row_is_centred ? Tiles : 1] = {};
};

// The same of Products times 16 rows, whose columns' sums are loaded a few at a time: so few registers hold them while
// all products are there.
template <class Problem, int Products, int Tiles, class Rows>
WPK_DEVICE void normaliseProducts(float (&products)[Products][Tiles][4], const RowScale (&rows)[Products][2],
    const OutputWindow<Rows>& window, int part)
{
    constexpr int kTogether = commonDivisor(Tiles, 4);
    WPK_UNROLL
    for (int first = 0; first < Tiles; first += kTogether)
    {
        ColumnSums<Problem, kTogether> sums;
        sums.load(window.from(0, first * 8));
        WPK_UNROLL
        for (int product = 0; product < Products; ++product)
            sums.apply(reinterpret_cast<float(&)[kTogether][4]>(products[product][first]), rows[product], part);
    }
}

} // namespace wpk
