// A thread's tile of a depthwise convolution (wpk/schedules/depthwise.cuh): its size, its loads, its products.
#pragma once

#include <wpk/kernels/numbers/packed_row.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/places/window.cuh>

namespace wpk
{

namespace detail
{

// What a thread does, and what it holds in registers of 4 bytes. wpk/schedules/tiles/depthwise.py counts the same.
template <class Problem, class Schedule>
struct DepthwiseTile
{
    using X = typename Problem::X;
    using Weight = typename Problem::Weight;
    static constexpr int V = Schedule::vector, rows = Schedule::rows, pixels = Schedule::pixels;
    static constexpr int allColumns = Problem::q + Problem::paddingQ;

    using Rows = WindowAxis<Problem::p, Problem::h, rows, Problem::filterH, Problem::strideH, Problem::dilationH,
        Problem::padTop>;
    using Columns = WindowAxis<allColumns, Problem::w, pixels, Problem::filterW, Problem::strideW, Problem::dilationW,
        Problem::padLeft>;
    using Part = RowPart<Problem::channels, Problem::paddingC, V>;
    using Place = PixelDomain<Problem::wide, Problem::channelsFastest, ceilDivide(Problem::p, rows),
        ceilDivide(allColumns, pixels), Part::chunks>;

    // Inputs and weights as they lie in memory: nothing is to be made of weights in front of an early launch's wait,
    // and a load that is alone behind its condition keeps no other one waiting.
    using Inputs = PackedRow<typename X::Type, V>;
    using Weights = PackedRow<typename Weight::Type, V>;
    using Sums = float[pixels][V];

    static constexpr int taps = Problem::filterH * Problem::filterW;
    // Pending sums and the weights, which several rows keep as floats; an input row; rows that the loads run ahead.
    static constexpr int sumWords = Rows::pending * pixels * V;
    static constexpr int weightWords = taps * (rows > 1 ? V : Weights::count);
    static constexpr int rowWords = Columns::used() * Inputs::count;
    static constexpr int ahead =
        minOf(Rows::span - 1, maxOf(1, minOf(32, 120 - sumWords - weightWords - rowWords) / rowWords));
    // The filter is held whole and the walk unrolled; otherwise a loop takes the filter row by row.
    static constexpr bool isHeld = !Problem::transposed && V * sizeof(typename X::Type) >= 4
                                   && sumWords + weightWords + (1 + ahead) * rowWords <= 120
                                   && rows * pixels * taps * V <= 1152 && Rows::used() * Columns::used() <= 160;
    static constexpr int weightRows = isHeld ? Problem::filterH : 1;
};

// The inputs of V output channels from k on, at one pixel.
template <class Problem, int V>
WPK_DEVICE void loadChannels(
    const void* x, int n, int h, int w, int k, int valid, PackedRow<typename Problem::X::Type, V>& values)
{
    using X = typename Problem::X;
    typename X::Type row[V];
    if constexpr (Problem::multiplier == 1)
    {
        loadRow<X, V>(x, X::offset(n, h, w, k), valid, row);
    }
    else
    {
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
        {
            const int c = minOf(k + v, Problem::channels - 1) / Problem::multiplier;
            row[v] = static_cast<const typename X::Type*>(x)[X::offset(n, h, w, c)];
        }
    }
    values.pack(row);
}

// Columns first, first + 1, ... of those under a tile from column q on, in input row h if `inside`; zeros elsewhere.
template <class Problem, class Tile, int Count>
WPK_DEVICE void loadColumns(const void* x, int n, int h, bool inside, int q, int first, int k, int valid,
    typename Tile::Inputs (&values)[Count])
{
    using Columns = typename Tile::Columns;
    WPK_UNROLL
    for (int i = 0; i < Count; ++i)
    {
        const int column = first + i;
        if (column >= Columns::span || !Columns::isUsed(column))
            continue;
        values[i] = {}; // @zeros
        if (inside && Columns::isInside(q, column))
            loadChannels<Problem, Tile::V>(x, n, h, Columns::input(q, column), k, valid, values[i]);
    }
}

// Adds these columns of input row `row` to all outputs of the tile whose windows they lie under. Rows: the axis of
// input rows, outputs and filter rows that `row`, `sums` and `weights` count.
template <class Rows, class Tile, int Count, int OutputRows, int FilterRows, int S>
WPK_DEVICE void addColumns(const typename Tile::Inputs (&values)[Count], int first, int row,
    const typename Tile::Weights (&weights)[FilterRows][S], typename Tile::Sums (&sums)[OutputRows])
{
    using Columns = typename Tile::Columns;
    constexpr int V = Tile::V;
    WPK_UNROLL
    for (int i = 0; i < Count; ++i)
    {
        const int column = first + i;
        if (column >= Columns::span || !Columns::isUsed(column))
            continue;
        float inputs[V];
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            inputs[v] = values[i][v];
        WPK_UNROLL
        for (int r = 0; r < FilterRows; ++r)
        {
            const int output = Rows::output(row, r);
            WPK_UNROLL
            for (int s = 0; s < S; ++s)
            {
                const int pixel = Columns::output(column, s);
                if (output < 0 || pixel < 0)
                    continue;
                WPK_UNROLL
                for (int v = 0; v < V; ++v)
                    sums[output][pixel][v] = fmaf(inputs[v], weights[r][s][v], sums[output][pixel][v]);
            }
        }
    }
}

// The same for a transposed convolution, where only every strideW-th output uses a given tap.
template <class Problem, class Tile>
WPK_DEVICE void addTransposedRow(const void* x, int n, int h, int q, int k, int valid,
    const typename Tile::Weights (&weights)[Problem::filterW], typename Tile::Sums& sums)
{
    constexpr int V = Tile::V;
    WPK_UNROLL
    for (int pixel = 0; pixel < Tile::pixels; ++pixel)
    {
        WPK_UNROLL
        for (int s = 0; s < Problem::filterW; ++s)
        {
            const int reach = q + pixel + Problem::padLeft - s * Problem::dilationW;
            if (reach < 0 || reach % Problem::strideW != 0 || reach / Problem::strideW >= Problem::w)
                continue;
            typename Tile::Inputs values;
            loadChannels<Problem, V>(x, n, h, reach / Problem::strideW, k, valid, values);
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
                sums[pixel][v] = fmaf(values[v], weights[s][v], sums[pixel][v]);
        }
    }
}

// The weights of filter row r.
template <class Problem, class Tile>
WPK_DEVICE void loadFilterRow(
    const void* weight, int r, int k, int valid, typename Tile::Weights (&weights)[Problem::filterW])
{
    using Weight = typename Problem::Weight;
    WPK_UNROLL
    for (int s = 0; s < Problem::filterW; ++s)
    {
        typename Weight::Type row[Tile::V];
        loadRow<Weight, Tile::V>(weight, Weight::offset(r, s, k), valid, row);
        weights[s].pack(row);
    }
}

} // namespace detail

} // namespace wpk
