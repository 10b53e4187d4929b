// A warp's sums to memory where what becomes of them has no operand that differs from row to row (epilogue.cuh): it is
// computed where mma leaves the sums, from operands that a thread loads once for all of its tiles, and what is staged
// are numbers as they are stored, not floats (tile_store.cuh).
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/epilogue/epilogue.cuh>
#include <wpk/kernels/sums/warp.cuh>
#include <wpk/kernels/tiles/tile_shared.cuh>

namespace wpk
{

namespace detail
{

// Operands of two neighbouring columns, the first of which is even.
template <class List>
struct PairOperands;

template <>
struct PairOperands<Tensors<>>
{
    static constexpr bool arePerColumn = true;
    template <class Number, int N>
    static WPK_DEVICE void load(const void* const*, int, int, Number (&)[2][N], int)
    {
    }
};

template <class One, class... Others>
struct PairOperands<Tensors<One, Others...>>
{
    using Rest = PairOperands<Tensors<Others...>>;
    static constexpr bool arePerColumn = One::isPerColumn && !One::inShared && Rest::arePerColumn;

    // Columns from `valid` on are not read.
    template <class Number, int N>
    static WPK_DEVICE void load(
        const void* const* tensors, int column, int valid, Number (&numbers)[2][N], int operand = 0)
    {
        using T = typename One::Type;
        constexpr int kWidth = minOf(One::width, 2);
        WPK_UNROLL
        for (int i = 0; i < 2; i += kWidth)
        {
            auto vector = zeroVector<T, kWidth>();
            if (column + i < valid) // @operand_exists
                vector = wpk::load<T, kWidth>(static_cast<const T*>(tensors[0]) + (column + i) * One::column);
            WPK_UNROLL
            for (int e = 0; e < kWidth; ++e)
                numbers[i + e][operand] = toNumber<Number>(vector[e]);
        }
        Rest::load(tensors + 1, column, valid, numbers, operand + 1);
    }
};

} // namespace detail

// The epilogue of a warp's columns. Shape says how the warps lie, as in tile_store.cuh, of one tile of 16 rows.
template <class Problem, class Shape>
class ColumnEpilogue
{
    using Y = typename Problem::Y;
    using YType = typename Y::Type;
    using List = typename Problem::Operands;
    using Operands = detail::PairOperands<List>;
    using Number = NumberOf<typename Problem::Epilogue>;
    using Stored = Result<YType, typename Problem::Epilogue>;
    static constexpr int kChunks = Shape::warpN / 8; // of eight columns
    static constexpr int kOperands = List::count > 0 ? List::count : 1;

public:
    // Whether it is this one, for y of two bytes an element in whole vectors.
    static constexpr bool isFor = Operands::arePerColumn && isSame<Number, float> && Y::width == 8 && sizeof(YType) == 2
                                  && kChunks <= 8 && (kChunks & (kChunks - 1)) == 0;

    ColumnEpilogue() = default;

    // Loads the operands of the block's window.
    template <class Rows>
    explicit WPK_DEVICE ColumnEpilogue(const OutputWindow<Rows>& window)
    {
        WPK_UNROLL
        for (int j = 0; j < Shape::tilesN; ++j)
            Operands::load(window.operands, ownColumn(window, j), window.columnEnd, operands_[j], 0);
    }

    // Writes 16 rows of each warp, from its staging of Shape::stagingBytes.
    template <class Rows>
    WPK_DEVICE void store(
        const float (&sums)[1][Shape::tilesN][4], unsigned char* shared, const OutputWindow<Rows>& window) const
    {
        using Tile = SwizzledTile<Shape::warpN * 2>;
        static_assert(Shape::tilesM == 1 && 16 * Shape::warpN * 2 <= Shape::stagingBytes, "rows are staged at once");
        static_assert(Shape::stagingBytes % 128 == 0, "chunks are chosen by the bits of an offset");
        const int lane = laneIndex(), staging = warpIndex() * Shape::stagingBytes;
        const int written = staging + Tile::offset(lane / 4, 0) + lane % 4 * 4; // chunk 0 of the lane's row
        __syncwarp();                                                           // the rows staged before have been read
        WPK_UNROLL
        for (int j = 0; j < Shape::tilesN; ++j)
        {
            WPK_UNROLL
            for (int half = 0; half < 2; ++half)
            {
                Number numbers[2];
                WPK_UNROLL
                for (int i = 0; i < 2; ++i)
                {
                    const Number number = Stored::number(sums[0][j][half * 2 + i], operands_[j][i]);
                    const bool exists = Problem::y_padding == 0 || ownColumn(window, j) + i < window.columnEnd;
                    numbers[i] = exists ? number : Number(0); // @padding_zero
                }
                Vector<YType, 2> pair;
                Stored::store(numbers, pair.values);
                unsigned char* const at = shared + (written ^ (j * 16)) + half * 8 * Shape::warpN * 2; // @pair_staged
                wpk::store<YType, 2>(reinterpret_cast<YType*>(at), pair);
            }
        }
        __syncwarp(); // @rows_staged
        YType* const y = static_cast<YType*>(window.y);
        const int firstRow = window.firstRow + warpIndex() / Shape::warpsN * Shape::warpM;
        const int column = firstColumn(window) + lane % kChunks * 8;
        const int read = staging + Tile::offset(lane / kChunks, lane % kChunks);
        constexpr int kRows = kWarpSize / kChunks; // of a vector of each lane
        WPK_UNROLL
        for (int down = 0; down < 16; down += kRows)
        {
            const int row = firstRow + down + lane / kChunks;
            if ((kRows > 16 && lane / kChunks >= 16) || column >= window.storedColumns
                || !isRowStored(window.rows, row, window.rowEnd))
                continue;
            const auto* const at = shared + (read ^ (Tile::pattern(down) * 16)) + down * Shape::warpN * 2;
            const auto vector = load<YType, 8>(reinterpret_cast<const YType*>(at));
            wpk::store<YType, 8>(y + window.rows.template offset<Y>(row) + column, vector);
        }
    }

private:
    template <class Rows>
    static WPK_DEVICE int firstColumn(const OutputWindow<Rows>& window) // of the warp
    {
        return window.firstColumn + warpIndex() % Shape::warpsN * Shape::warpN;
    }
    template <class Rows>
    static WPK_DEVICE int ownColumn(const OutputWindow<Rows>& window, int tile) // the lane's first of a tile
    {
        return firstColumn(window) + tile * 8 + laneIndex() % 4 * 2;
    }

    Number operands_[Shape::tilesN][2][kOperands];
};

} // namespace wpk
