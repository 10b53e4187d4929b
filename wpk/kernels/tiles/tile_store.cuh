// A block's accumulators to memory: each warp takes its tiles, in mma's layout, through a small piece of shared memory
// and the epilogue, 16 rows at a time. Shape says how the warps lie: warpsM, warpsN, warpM, warpN, tilesM, tilesN, and
// stagingStride, stagingBytes of a warp's piece.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/epilogue/epilogue.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

// Warps one below the other, each with 16 rows of all Columns.
template <int Warps, int Columns>
struct StackedWarps
{
    static constexpr int warpsM = Warps, warpsN = 1;
    static constexpr int warpM = 16, warpN = Columns, tilesM = 1, tilesN = warpN / 8;
    static constexpr int stagingStride = warpN + 8, stagingBytes = warpM * stagingStride * 4;
};

// Columns of a tile that a warp takes through its staging as floats at once, in a loop of tiles: the most that divide
// them, of whole units (wpk/schedules/wgmma/staging.py).
WPK_DEVICE constexpr int stagedAtOnce(int columns, int most = 64, int unit = 16)
{
    int widest = unit;
    for (int each = unit; each <= minOf(columns, most); each += unit)
        widest = columns % each == 0 ? each : widest;
    return widest;
}

// Where columns lie in a staged row, of which lanes read vectors of V. Eight columns are two accesses of a lane: first
// halves lie together, and second halves behind them, so that neither the lanes that read nor those that write meet in
// a bank, where a warp has 64 columns or more.
template <class Shape, int V>
WPK_DEVICE int stagedColumn(int column)
{
    constexpr int kSecond = Shape::warpN / 2 + 4;
    return V == 8 ? column / 8 * 4 + column % 4 + column / 4 % 2 * kSecond : column;
}

// Where a row of the staging begins. Lanes that take rows, as they do where y's columns are apart, read four of them
// from each group of banks: every fourth row moves on by two columns, for which rows have room.
template <class Problem, class Shape>
WPK_DEVICE int stagedRow(int row)
{
    return row * Shape::stagingStride + (Problem::Y::column != 1 ? row / 4 * 2 : 0);
}

// Writes 16 rows of a warp's columns from its staging to where the window begins. InLoop as in EpilogueColumns.
template <class Problem, class Shape, bool InLoop, class Rows>
WPK_DEVICE void storeStaged(const float* staging, const OutputWindow<Rows>& window)
{
    const int firstRow = window.firstRow, rowEnd = window.rowEnd; // here, or ptxas computes them for each vector
    constexpr int V = Problem::Y::width, kRead = minOf(V, 4), kVectors = Shape::warpN / V;
    // Neighbouring lanes take neighbouring vectors of a row, or rows where y's columns are apart.
    constexpr bool kAlongRows = Problem::Y::column != 1;
    constexpr int kItems = 16 * kVectors / kWarpSize;
    static_assert(16 * kVectors % kWarpSize == 0, "every lane has as many vectors");
    // Every kColumnSets-th item of a lane has the same columns: what belongs to columns is loaded once.
    constexpr int kColumnSets = kAlongRows ? kItems : kVectors / commonDivisor(kVectors, kWarpSize);
    constexpr int kOfSet = kItems / kColumnSets, kAtOnce = minOf(kOfSet, 8); // so many are under way at once
    // Where y's columns are apart, each item has columns of its own, and several are asked for at once all the same.
    constexpr int kSetsAlongRows = commonDivisor(kColumnSets, InLoop ? 4 : 8);
    constexpr int kSetsAtOnce = kAlongRows ? kSetsAlongRows : kOfSet > 2 ? 1 : kColumnSets;
    static_assert(kItems % kColumnSets == 0 && kOfSet % kAtOnce == 0, "a lane takes whole groups of rows");
    using Columns = EpilogueColumns<Problem, Rows, V, InLoop>;
    for (int firstSet = 0; firstSet < kColumnSets; firstSet += kSetsAtOnce)
    {
        const auto columnOf = [=](int set)
        {
            const int first = laneIndex() + (firstSet + set) * kWarpSize;
            return (kAlongRows ? first / 16 : first % kVectors) * V;
        };
        Columns columns[kSetsAtOnce];
        WPK_UNROLL
        for (int set = 0; set < kSetsAtOnce; ++set)
            columns[set] = Columns(window, columnOf(set));
        WPK_UNROLL
        for (int begin = 0; begin < kOfSet; begin += kAtOnce)
        {
            const auto rowOf = [=](int item, int set)
            {
                const int index = laneIndex() + ((begin + item) * kColumnSets + firstSet + set) * kWarpSize;
                return kAlongRows ? index % 16 : index / kVectors;
            };
            typename Columns::Fetched fetched[kAtOnce][kSetsAtOnce];
            WPK_UNROLL
            for (int item = 0; item < kAtOnce; ++item)
            {
                WPK_UNROLL
                for (int set = 0; set < kSetsAtOnce; ++set)
                {
                    if constexpr (InLoop || kStoresMoments<Problem>)
                        fetched[item][set] = {};
                    const int row = firstRow + rowOf(item, set);
                    if (isRowStored(window.rows, row, rowEnd))
                        columns[set].fetch(row, fetched[item][set]);
                }
            }
            WPK_UNROLL
            for (int item = 0; item < kAtOnce; ++item)
            {
                WPK_UNROLL
                for (int set = 0; set < kSetsAtOnce; ++set)
                {
                    const int row = rowOf(item, set);
                    const bool isStored = isRowStored(window.rows, firstRow + row, rowEnd);
                    if (!kStoresMoments<Problem> && !isStored)
                        continue;
                    float values[V];
                    WPK_UNROLL
                    for (int e = 0; e < V; e += kRead)
                    {
                        const int at = stagedColumn<Shape, V>(columnOf(set)) + stagedColumn<Shape, V>(e);
                        const auto part = load<float, kRead>(staging + stagedRow<Problem, Shape>(row) + at);
                        WPK_UNROLL
                        for (int v = 0; v < kRead; ++v)
                            values[e + v] = part[v];
                    }
                    if constexpr (kStoresMoments<Problem>)
                        columns[set].storeWithMoments(firstRow + row, isStored, values, fetched[item][set]);
                    else
                        columns[set].store(firstRow + row, values, fetched[item][set]);
                }
            }
        }
    }
}

// Writes a block's accumulators to its window; what happens to them is computed in float, to which sums of bytes are
// rounded first. InLoop as in EpilogueColumns.
template <class Problem, class Shape, bool InLoop = false, class Sum, class Rows>
WPK_DEVICE void storeTiles(
    const Sum (&acc)[Shape::tilesM][Shape::tilesN][4], unsigned char* shared, const OutputWindow<Rows>& window)
{
    const int lane = laneIndex();
    const OutputWindow<Rows> ofWarp =
        window.from(warpIndex() / Shape::warpsN * Shape::warpM, warpIndex() % Shape::warpsN * Shape::warpN);
    constexpr int V = Problem::Y::width;
    float* const staging = reinterpret_cast<float*>(shared + warpIndex() * Shape::stagingBytes);
    float* const own = staging + stagedRow<Problem, Shape>(lane / 4) + stagedColumn<Shape, V>(lane % 4 * 2);
    WPK_UNROLL
    for (int i = 0; i < Shape::tilesM; ++i)
    {
        __syncwarp(); // the rows staged before have been read
        WPK_UNROLL
        for (int j = 0; j < Shape::tilesN; ++j)
        {
            float* const at = own + stagedColumn<Shape, V>(j * 8);
            store<float, 2>(at, {toFloat(acc[i][j][0]), toFloat(acc[i][j][1])});
            store<float, 2>(at + stagedRow<Problem, Shape>(8), {toFloat(acc[i][j][2]), toFloat(acc[i][j][3])});
        }
        __syncwarp();
        storeStaged<Problem, Shape, InLoop>(staging, ofWarp.from(i * 16, 0));
    }
}

// Stands for the residual (wgmma/residual.cuh) where all operands are read from global memory: nothing is waited for.
struct NoResidual
{
    static constexpr int kBytes = 0, kBarrierBytes = 0;
    static constexpr bool exists = false;
    NoResidual() = default;
    WPK_DEVICE NoResidual(unsigned char*, SharedAddress, const void*) {}
    WPK_DEVICE void init() const {}
    template <class Rows>
    WPK_DEVICE void produceTile(const OutputWindow<Rows>&) const
    {
    }
    WPK_DEVICE void wait(int) const {}
    WPK_DEVICE void release(int) const {}
    WPK_DEVICE void beginTile(int, int) const {}
    WPK_DEVICE void endTile() const {}
    template <class Rows>
    WPK_DEVICE const OutputWindow<Rows>& on(int, const OutputWindow<Rows>& window, int) const
    {
        return window;
    }
};

// The same of warpgroups' accumulators in the loop of a persistent kernel: Shape::Staged says how many columns are
// staged at once, each time with a piece of the residual. A warp has 16 of each 64 rows, of a window that begins 64
// rows higher for each warpgroup before its own; `tileRow` is the first row of all of them.
template <class Problem, class Shape, class Rows, class Residual>
WPK_DEVICE void storeTilesInLoop(const typename Shape::Sum (&acc)[Shape::accumulators], unsigned char* shared,
    const OutputWindow<Rows>& window, Residual& residual, int tileRow)
{
    using Staged = typename Shape::Staged;
    WPK_UNROLL
    for (int column = 0; column < Shape::blockN; column += Staged::warpN)
    {
        const int piece = column / Staged::warpN;
        residual.wait(piece);
        const auto ofPiece = residual.on(piece, window.from(0, column), tileRow);
        WPK_UNROLL
        for (int row = 0; row < Shape::kGroupRows; row += Shape::kProductRows)
        {
            typename Shape::Sum tiles[1][Staged::tilesN][4];
            memcpy(tiles, acc + row / Shape::kProductRows * (Shape::blockN / 2) + column / 2, sizeof tiles);
            storeTiles<Problem, Staged, true>(tiles, shared, ofPiece.from(row, 0)); // @rows_stored
        }
        residual.release(piece);
    }
    residual.endTile();
}

} // namespace wpk
