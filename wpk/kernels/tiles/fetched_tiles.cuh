// Warpgroups' sums to memory in the loop of a persistent kernel where a warp asks for what its rows and columns need
// beside sums before it waits for the last of these: it stores without waiting for memory. As storeTilesInLoop of
// tile_store.cuh, 16 rows of a warp some columns at a time.
#pragma once

#include <wpk/kernels/tiles/tile_store.cuh>

namespace wpk
{

namespace detail
{

// Registers that operands of V columns take, of one row or of several where they differ from row to row.
template <class... Operands>
WPK_DEVICE constexpr int registersOfVectors(Tensors<Operands...>, int v, int rows)
{
    return (0 + ...
            + ((Operands::isPerColumn ? 1 : rows)
                * maxOf((Operands::column == 0 ? 1 : v) * static_cast<int>(sizeof(typename Operands::Type)) / 4, 1)));
}

} // namespace detail

// Shape::Staged says how many columns are staged at once, all rows of which lanes take in vectors of y. Registers are
// free when `fetch` is called; what they do not hold is asked for as sums that have been staged leave others.
template <class Problem, class Shape, class Rows, int Registers>
class FetchedTiles
{
    using Staged = typename Shape::Staged;
    static constexpr int V = Problem::Y::width, kVectors = Staged::warpN / V;
    static constexpr int kRows = 16 * kVectors / kWarpSize; // of a lane
    static constexpr int kPieces = Shape::blockN / Staged::warpN;
    static constexpr int kOfPiece = detail::registersOfVectors(typename Problem::Operands{}, V, kRows);
    static constexpr int kAhead = minOf(maxOf(Registers / maxOf(kOfPiece, 1), 1), kPieces); // pieces
    static_assert(Problem::Y::column == 1, "neighbouring lanes take neighbouring vectors of a row");
    static_assert(
        kWarpSize % kVectors == 0 && kRows * kWarpSize == 16 * kVectors, "a lane's rows have the same columns");
    static_assert(!kStoresMoments<Problem>, "rows that do not exist are left out");
    using Window = OutputWindow<Rows>;
    using Columns = EpilogueColumns<Problem, Rows, V, true, true>;

public:
    // Asks for what the first pieces need. `window` is that of the warps that have sums, all lanes of which call it.
    WPK_DEVICE void fetch(const Window& window)
    {
        WPK_UNROLL
        for (int piece = 0; piece < kAhead; ++piece)
            fetchPiece(piece, ofWarp(window));
    }

    // Stores the sums behind `fetch`, to the same window.
    WPK_DEVICE void store(
        const typename Shape::Sum (&acc)[Shape::accumulators], unsigned char* shared, const Window& window)
    {
        float* const staging = reinterpret_cast<float*>(shared + warpIndex() * Staged::stagingBytes);
        WPK_UNROLL
        for (int piece = 0; piece < kPieces; ++piece)
        {
            typename Shape::Sum sums[Staged::tilesN][4];
            memcpy(sums, acc + piece * (Staged::warpN / 2), sizeof sums);
            __syncwarp(); // @staging_read
            stage(staging, sums);
            if (piece + kAhead < kPieces)
                fetchPiece(piece + kAhead, ofWarp(window));
            __syncwarp(); // @fetched_sums_staged
            storePiece(piece, staging, ofWarp(window));
        }
    }

private:
    static WPK_DEVICE Window ofWarp(const Window& window)
    {
        return window.from(warpIndex() * Staged::warpM, 0); // @fetched_rows_of_warp
    }
    static WPK_DEVICE int rowOf(int item)
    {
        return laneIndex() / kVectors + item * (kWarpSize / kVectors);
    }

    WPK_DEVICE void fetchPiece(int piece, const Window& window)
    {
        columns_[piece] = Columns(window, piece * Staged::warpN + laneIndex() % kVectors * V); // @fetched_columns
        WPK_UNROLL
        for (int item = 0; item < kRows; ++item)
        {
            fetched_[piece][item] = {};
            const int row = window.firstRow + rowOf(item);
            if (isRowStored(window.rows, row, window.rowEnd)) // @existing_rows_fetched
                columns_[piece].fetch(row, fetched_[piece][item]);
        }
    }

    static WPK_DEVICE void stage(float* staging, const typename Shape::Sum (&sums)[Staged::tilesN][4])
    {
        const int row = laneIndex() / 4;
        float* const own = staging + stagedColumn<Staged, V>(laneIndex() % 4 * 2);
        WPK_UNROLL
        for (int j = 0; j < Staged::tilesN; ++j)
        {
            float* const at = own + stagedColumn<Staged, V>(j * 8);
            wpk::store<float, 2>(at + stagedRow<Problem, Staged>(row), {toFloat(sums[j][0]), toFloat(sums[j][1])});
            wpk::store<float, 2>(at + stagedRow<Problem, Staged>(row + 8), {toFloat(sums[j][2]), toFloat(sums[j][3])});
        }
    }

    WPK_DEVICE void storePiece(int piece, const float* staging, const Window& window) const
    {
        constexpr int kRead = minOf(V, 4);
        const float* const columns = staging + stagedColumn<Staged, V>(laneIndex() % kVectors * V);
        WPK_UNROLL
        for (int item = 0; item < kRows; ++item)
        {
            const int row = rowOf(item);
            if (!isRowStored(window.rows, window.firstRow + row, window.rowEnd)) // @existing_rows_stored
                continue;
            float values[V];
            WPK_UNROLL
            for (int e = 0; e < V; e += kRead)
            {
                const float* const at = columns + stagedRow<Problem, Staged>(row) + stagedColumn<Staged, V>(e);
                const auto part = load<float, kRead>(at);
                WPK_UNROLL
                for (int v = 0; v < kRead; ++v)
                    values[e + v] = part[v];
            }
            columns_[piece].store(window.firstRow + row, values, fetched_[piece][item]);
        }
    }

    Columns columns_[kPieces];
    typename Columns::Fetched fetched_[kPieces][kRows];
};

} // namespace wpk
