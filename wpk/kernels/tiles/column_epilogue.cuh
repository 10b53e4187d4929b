// A warp's sums to memory where what becomes of them has no operand that differs from row to row (epilogue.cuh): it is
// computed where mma leaves the sums, from operands that a thread loads once for its columns, and what is staged are
// numbers as they are stored, not floats (tile_store.cuh).
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/epilogue/epilogue.cuh>
#include <wpk/kernels/mma/row_norm.cuh>
#include <wpk/kernels/mma/store_matrix.cuh>
#include <wpk/kernels/sums/warp.cuh>
#include <wpk/kernels/tiles/tile_shared.cuh>

namespace wpk
{

namespace detail
{

template <class T>
inline constexpr bool isFloat16 = isSame<T, Half> || isSame<T, Bfloat16>;

// Two neighbouring numbers as they lie in memory, until they are computed with: those of 16 bits in one register.
template <class T>
class NumberPair
{
    static constexpr bool isWord = isFloat16<T>;

public:
    WPK_DEVICE void set(const Vector<T, 2>& pair)
    {
        if constexpr (isWord)
            pair_ = pair[0].bits | static_cast<uint32>(pair[1].bits) << 16;
        else
            pair_ = pair;
    }
    // Aligned to both.
    WPK_DEVICE void load(const T* pair)
    {
        if constexpr (isWord)
            pair_ = wpk::load<uint32, 1>(reinterpret_cast<const uint32*>(pair))[0];
        else
            pair_ = wpk::load<T, 2>(pair);
    }
    template <class Number>
    WPK_DEVICE Number number(int i) const
    {
        if constexpr (isWord)
            return i == 0 ? unpackLow<T>(pair_) : unpackHigh<T>(pair_);
        else
            return toNumber<Number>(pair_[i]);
    }

private:
    Select<isWord, uint32, Vector<T, 2>> pair_{};
};

// Operands of two neighbouring columns, the first of which is even.
template <class List>
struct PairOperands;

template <>
struct PairOperands<Tensors<>>
{
    static constexpr bool arePerColumn = true;
    template <bool Whole>
    WPK_DEVICE void load(const void* const*, int, int)
    {
    }
    template <class Number>
    WPK_DEVICE void widen(int, Number*) const
    {
    }
};

template <class One, class... Others>
struct PairOperands<Tensors<One, Others...>>
{
    using T = typename One::Type;
    using Rest = PairOperands<Tensors<Others...>>;
    static constexpr bool arePerColumn = One::isPerColumn && !One::inShared && Rest::arePerColumn;

    // Columns from `valid` on are not read, and 0; Whole: there are none.
    template <bool Whole>
    WPK_DEVICE void load(const void* const* tensors, int column, int valid)
    {
        const T* const at = static_cast<const T*>(tensors[0]) + column * One::column;
        pair = {};
        if constexpr (One::width >= 2)
        {
            if (Whole || column < valid) // @pair_exists
                pair.load(at);
        }
        else
        {
            auto both = zeroVector<T, 2>();
            WPK_UNROLL
            for (int i = 0; i < 2; ++i)
            {
                if (Whole || column + i < valid) // @operand_exists
                    both[i] = at[i * One::column];
            }
            pair.set(both);
        }
        rest.template load<Whole>(tensors + 1, column, valid);
    }

    // Those of the first or of the second column.
    template <class Number>
    WPK_DEVICE void widen(int i, Number* operands) const
    {
        operands[0] = pair.template number<Number>(i);
        rest.widen(i, operands + 1);
    }

    NumberPair<T> pair;
    Rest rest;
};

} // namespace detail

// Whether a problem's epilogue is this one: y has floating point numbers of two bytes, in whole vectors.
template <class Problem>
inline constexpr bool kStoresByColumns =
    detail::PairOperands<typename Problem::Operands>::arePerColumn
    && isSame<NumberOf<typename Problem::Epilogue>, float> && Problem::Y::width == 8
    && detail::isFloat16<typename Problem::Y::Type> && !kStoresMoments<Problem>;

// So many columns of a warp's 16 rows, a power of two. List: the operands, and what else a sum needs of its column.
template <class Problem, int Columns, class List = typename Problem::Operands>
class ColumnPiece
{
    using Y = typename Problem::Y;
    using YType = typename Y::Type;
    using Number = NumberOf<typename Problem::Epilogue>;
    using Stored = Result<YType, typename Problem::Epilogue>;
    static constexpr int kChunks = Columns / 8, kRowBytes = Columns * 2; // of eight columns
    using Tile = SwizzledTile<kRowBytes>;

public:
    static constexpr int kTiles = Columns / 8; // of mma
    static constexpr int kBytes = 16 * kRowBytes;

    // Loads the operands of the columns from the window's first on. Whole: all of them exist.
    template <bool Whole = false, class Rows>
    WPK_DEVICE void load(const OutputWindow<Rows>& window)
    {
        WPK_UNROLL
        for (int j = 0; j < kTiles; ++j)
            operands_[j].template load<Whole>(window.operands, ownColumn(window, j), window.columnEnd);
    }

    // Computes what is stored of the sums of some tiles from `first` on: for each the pairs of the upper and of the
    // lower of a lane's two rows, as mma has its left factor. `scaled` says what comes of a sum first, of either row.
    template <int Words, class Sum, class Scaled, class Rows>
    WPK_DEVICE void pack(uint32 (&words)[Words], const Sum (&sums)[kTiles][4], int first, const Scaled& scaled,
        const OutputWindow<Rows>& window) const
    {
        WPK_UNROLL
        for (int tile = 0; tile < Words / 2; ++tile)
        {
            const int j = first + tile;
            Number operands[2][kOperands] = {};
            operands_[j].widen(0, operands[0]);
            operands_[j].widen(1, operands[1]);
            WPK_UNROLL
            for (int half = 0; half < 2; ++half)
            {
                Number numbers[2];
                WPK_UNROLL
                for (int i = 0; i < 2; ++i)
                {
                    const Number sum = scaled.of(toFloat(sums[j][half * 2 + i]), half, operands[i]);
                    const Number number = Stored::number(sum, operands[i]);
                    const bool exists = Problem::y_padding == 0 || ownColumn(window, j) + i < window.columnEnd;
                    numbers[i] = exists ? number : Number(0); // @padding_zero
                }
                words[tile * 2 + half] = pack2<YType>(numbers[0], numbers[1]); // @pair_given
            }
        }
    }

    // Computes what is stored of the sums, and writes it to the kBytes that begin `staging` further than `shared`; a
    // multiple of 128.
    template <class Sum, class Scaled, class Rows>
    WPK_DEVICE void stage(const Sum (&sums)[kTiles][4], const Scaled& scaled, unsigned char* shared, int staging,
        const OutputWindow<Rows>& window) const
    {
        constexpr int kTogether = kTiles == 1 ? 1 : 2; // tiles that are staged at once
        const int lane = laneIndex();
        const int row = staging + Tile::offset(lane % 16, kTiles == 1 ? 0 : lane / 16); // that the lane gives, of these
        WPK_UNROLL
        for (int first = 0; first < kTiles; first += kTogether)
        {
            uint32 words[kTogether * 2];
            pack(words, sums, first, scaled, window);
            storeMatrices(shared + (row ^ (first * 16)), words); // @tiles_staged
        }
    }

    // Writes what all lanes have staged to the rows and columns that the window begins with.
    template <class Rows>
    static WPK_DEVICE void write(const unsigned char* shared, int staging, const OutputWindow<Rows>& window)
    {
        const int lane = laneIndex(), column = window.firstColumn + lane % kChunks * 8;
        const int read = staging + Tile::offset(lane / kChunks, lane % kChunks);
        const int firstRow = window.firstRow, rowEnd = window.rowEnd; // here, or ptxas computes them for each vector
        YType* const y = static_cast<YType*>(window.y);
        constexpr int kRows = kWarpSize / kChunks; // of a vector of each lane
        WPK_UNROLL
        for (int down = 0; down < 16; down += kRows)
        {
            const int row = firstRow + down + lane / kChunks;
            if ((kRows > 16 && lane / kChunks >= 16) || column >= window.storedColumns
                || !isRowStored(window.rows, row, rowEnd)) // @vector_stored
                continue;
            const auto* const at = shared + (read ^ (Tile::pattern(down) * 16)) + down * kRowBytes;
            const auto vector = wpk::load<YType, 8>(reinterpret_cast<const YType*>(at));
            wpk::store<YType, 8>(y + window.rows.template offset<Y>(row) + column, vector);
        }
    }

private:
    static constexpr int kOperands = List::count > 0 ? List::count : 1;

    template <class Rows>
    static WPK_DEVICE int ownColumn(const OutputWindow<Rows>& window, int tile) // the lane's first of a tile
    {
        return window.firstColumn + tile * 8 + laneIndex() % 4 * 2;
    }

    detail::PairOperands<List> operands_[kTiles];
};

// The epilogue of a warp's columns, all of which are a piece. Shape says how the warps lie, as in tile_store.cuh, of
// one tile of 16 rows.
template <class Problem, class Shape>
class ColumnEpilogue
{
    using Piece = ColumnPiece<Problem, Shape::warpN>;

public:
    static constexpr bool isFor =
        kStoresByColumns<Problem> && Piece::kTiles <= 8 && (Piece::kTiles & (Piece::kTiles - 1)) == 0;

    ColumnEpilogue() = default;

    // Loads the operands of the block's window.
    template <class Rows>
    explicit WPK_DEVICE ColumnEpilogue(const OutputWindow<Rows>& window)
    {
        piece_.load(ofWarp(window));
    }

    // Writes 16 rows of each warp, from its staging of Shape::stagingBytes.
    template <class Rows>
    WPK_DEVICE void store(
        const float (&sums)[1][Shape::tilesN][4], unsigned char* shared, const OutputWindow<Rows>& window) const
    {
        static_assert(Shape::tilesM == 1 && Piece::kBytes <= Shape::stagingBytes, "rows are staged at once");
        static_assert(Shape::stagingBytes % 128 == 0, "chunks are chosen by the bits of an offset");
        const int staging = warpIndex() * Shape::stagingBytes;
        __syncwarp(); // the rows staged before have been read
        piece_.stage(sums[0], RawSums{}, shared, staging, ofWarp(window));
        __syncwarp(); // @rows_staged
        Piece::write(shared, staging, ofWarp(window));
    }

private:
    template <class Rows>
    static WPK_DEVICE OutputWindow<Rows> ofWarp(const OutputWindow<Rows>& window)
    {
        return window.from(warpIndex() / Shape::warpsN * Shape::warpM, warpIndex() % Shape::warpsN * Shape::warpN);
    }

    Piece piece_;
};

} // namespace wpk
