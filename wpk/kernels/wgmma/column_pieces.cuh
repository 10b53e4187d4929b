// Warpgroups' sums to memory by columns (column_epilogue.cuh, sm_90a): a warp takes its rows through a small piece of
// shared memory some columns at a time, so that few registers hold operands. Those of the next columns are asked for
// while these are written.
#pragma once

#include <wpk/kernels/mma/row_norm.cuh>
#include <wpk/kernels/tiles/column_epilogue.cuh>

namespace wpk
{

namespace detail
{

// What a sum needs of its column: the operands, and where rows lose their mean the sum of b's column, which follows
// them.
template <class Problem, class List, bool Centred>
struct WithColumnSums
{
    using Type = List;
};
template <class Problem, class... Operands>
struct WithColumnSums<Problem, Tensors<Operands...>, true>
{
    using Type = Tensors<Operands..., Strided<float, Problem::n % 2 == 0 ? 2 : 1, 0, 0, 0, 1>>;
};

template <class Problem>
WPK_DEVICE constexpr bool losesMean()
{
    if constexpr (kNormsRows<Problem>)
        return Problem::row_is_centred;
    return false;
}

// What a thread holds of a column.
template <class... Operands>
WPK_DEVICE constexpr int bytesOfColumn(Tensors<Operands...>)
{
    return (0 + ... + static_cast<int>(sizeof(typename Operands::Type)));
}

// Columns that are stored together of so many that are left, `most` of them at most.
WPK_DEVICE constexpr int columnsTogether(int left, int most = 64)
{
    return left >= 64 && most >= 64 ? 64 : left >= 32 ? 32 : 16;
}

} // namespace detail

// Bytes of shared memory that a warp takes so many columns through (wpk/schedules/wgmma/staging.py).
WPK_DEVICE constexpr int columnStagingBytes(int columns)
{
    return 16 * 2 * detail::columnsTogether(columns);
}

// A tile's sums of a problem that kStoresByColumns, to a window whose rows are those of warps one below the other, 16
// each, and of further products of a warpgroup so many rows below these.
template <class Problem, class Shape>
class ColumnPieces
{
    using List =
        typename detail::WithColumnSums<Problem, typename Problem::Operands, detail::losesMean<Problem>()>::Type;
    static constexpr int kMost = detail::bytesOfColumn(List{}) > 2 ? 32 : 64; // as registers allow in the largest tiles
    template <int Column>
    using Piece = ColumnPiece<Problem, detail::columnsTogether(Shape::blockN - Column, kMost), List>;

public:
    using First = Piece<0>;

    // `rows` say what comes of sums first (norm_rows.cuh). All lanes of the warps that have sums call it.
    template <class Normed, class Rows>
    static WPK_DEVICE void store(const typename Shape::Sum (&acc)[Shape::accumulators], const Normed& normed,
        unsigned char* shared, const OutputWindow<Rows>& window)
    {
        store(load(window), acc, normed, shared, window);
    }

    // The same in two: operands of the columns that are stored first are asked for before the sums are there.
    template <class Rows>
    static WPK_DEVICE First load(const OutputWindow<Rows>& window)
    {
        First piece;
        piece.load(ofWarp(window));
        return piece;
    }
    template <class Normed, class Rows>
    static WPK_DEVICE void store(const First& piece, const typename Shape::Sum (&acc)[Shape::accumulators],
        const Normed& normed, unsigned char* shared, const OutputWindow<Rows>& window)
    {
        storeFrom<0>(piece, acc, normed, shared, ofWarp(window));
    }

private:
    template <class Rows>
    static WPK_DEVICE OutputWindow<Rows> ofWarp(const OutputWindow<Rows>& window)
    {
        return window.from(warpIndex() * 16, 0); // @rows_of_warp
    }

    template <int Column, class Normed, class Rows>
    static WPK_DEVICE void storeFrom(const Piece<Column>& piece, const typename Shape::Sum (&acc)[Shape::accumulators],
        const Normed& normed, unsigned char* shared, const OutputWindow<Rows>& window)
    {
        using Own = Piece<Column>;
        constexpr int kProducts = Shape::kGroupRows / Shape::kProductRows, kNext = Column + Own::kTiles * 8;
        constexpr bool isLast = kNext >= Shape::blockN;
        const int staging = warpIndex() * columnStagingBytes(Shape::blockN); // @staging_of_warp
        Piece<isLast ? Column : kNext> next;
        WPK_UNROLL
        for (int product = 0; product < kProducts; ++product)
        {
            const auto ofPiece = window.from(product * Shape::kProductRows, Column); // @product_placed
            typename Shape::Sum sums[Own::kTiles][4];
            memcpy(sums, acc + product * (Shape::blockN / 2) + Column / 2, sizeof sums); // @sums_of_piece
            __syncwarp(); // the piece before has been read: those who store matrices meet, which orders no memory
            piece.stage(sums, normed.scaled(product), shared, staging, ofPiece);
            if constexpr (!isLast)
            {
                if (product + 1 == kProducts)
                    next.load(window.from(0, kNext)); // @next_piece
            }
            __syncwarp(); // @piece_staged
            Own::write(shared, staging, ofPiece);
        }
        if constexpr (!isLast)
            storeFrom<kNext>(next, acc, normed, shared, window);
    }
};

} // namespace wpk
