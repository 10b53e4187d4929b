// Resampling of two spatial axes, nearest or linear; a thread computes V neighbouring channels of a tile of outputs,
// whose samples it loads once, and whose places and weights it computes once a row and a column.
//
// Problem: X over (n, h, w, c); Y over (n, p, q, c), or over (n, p, c, q) where channelsFastest is false; coordinates
// and sampling; ratios as Resampling has them, scales as the bits of numbers. Numbers are fp32, fp64 where x is that:
// positions, weights and what is interpolated.
// paddingC, paddingQ: zeros that follow y's last channel or column.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/places/resampled_axis.cuh>

namespace wpk
{

namespace detail
{

// A tile of Schedule::rows x Schedule::pixels outputs.
template <class Problem, class Schedule>
struct ResizedTile
{
    using X = typename Problem::X;
    using Y = typename Problem::Y;
    using Number = Select<isSame<typename X::Type, double>, double, float>;
    static constexpr int V = Schedule::vector;
    template <int From, int To, int Ratio>
    using Along = Resampling<Problem::coordinates, Problem::sampling, From, To, Ratio>;
    using Rows = ResampledRun<Along<Problem::h, Problem::p, Problem::ratioH>, Schedule::rows, Number>;
    using Columns = ResampledRun<Along<Problem::w, Problem::q, Problem::ratioW>, Schedule::pixels, Number>;
    using Samples = typename X::Type[Rows::slots][Columns::slots][V];
    using Row = typename Y::Type[Schedule::pixels][V];

    Rows rows;
    Columns columns;

    WPK_DEVICE ResizedTile(int p, int q) : rows(p, Problem::scaleH), columns(q, Problem::scaleW) {}

    // All samples under the tile.
    WPK_DEVICE void load(const void* x, int n, int c, int valid, Samples& samples) const
    {
        const typename X::Type* const image = static_cast<const typename X::Type*>(x) + X::offset(n, 0, 0, 0);
        WPK_UNROLL
        for (int i = 0; i < Rows::slots; ++i)
        {
            const int row = static_cast<int>(X::offset(0, rows.at[i], 0, c));
            WPK_UNROLL
            for (int j = 0; j < Columns::slots; ++j)
                loadRow<X, V>(image, row + static_cast<int>(X::offset(0, 0, columns.at[j], 0)), valid, samples[i][j]);
        }
    }

    // The tile's row i.
    WPK_DEVICE void row(int i, const Samples& samples, Row& outputs) const
    {
        if constexpr (Problem::sampling == Sampling::linear)
        {
            Number between[Columns::slots][V]; // two rows of samples
            WPK_UNROLL
            for (int j = 0; j < Columns::slots; ++j)
            {
                WPK_UNROLL
                for (int v = 0; v < V; ++v)
                    between[j][v] = interpolated(toNumber<Number>(samples[Rows::slot(i)][j][v]),
                        toNumber<Number>(samples[Rows::slot(i) + 1][j][v]), rows.weight[i]);
            }
            WPK_UNROLL
            for (int j = 0; j < Schedule::pixels; ++j)
            {
                const int slot = Columns::slot(j);
                WPK_UNROLL
                for (int v = 0; v < V; ++v)
                    outputs[j][v] = fromNumber<typename Y::Type>(
                        interpolated(between[slot][v], between[slot + 1][v], columns.weight[j]));
            }
        }
        else
        {
            WPK_UNROLL
            for (int j = 0; j < Schedule::pixels; ++j)
            {
                WPK_UNROLL
                for (int v = 0; v < V; ++v)
                    outputs[j][v] = convertElement<typename Y::Type>(samples[Rows::slot(i)][Columns::slot(j)][v]);
            }
        }
    }

private:
    static WPK_DEVICE Number interpolated(Number low, Number high, Number weight)
    {
        return low * (Number(1) - weight) + high * weight;
    }
};

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void resize(Inputs<1> inputs, int n, void* y)
{
    using Tile = detail::ResizedTile<Problem, Schedule>;
    using Y = typename Problem::Y;
    constexpr int V = Schedule::vector, pixels = Schedule::pixels;
    using Part = RowPart<Problem::channels, Problem::paddingC, V>;
    using Run = RowPart<Problem::q, Problem::paddingQ, pixels>;
    using Place = PixelDomain<Problem::wide, Problem::channelsFastest, ceilDivide(Problem::p, Schedule::rows),
        Run::chunks, Part::chunks>;
    const int64 item = firstItem<Schedule::threads>();
    startIfEarly<Schedule>();    // @previous_awaited
    if (item >= Place::items(n)) // @idle_threads_end
        return;
    const Place place(item);
    const Part part(place.chunk);
    const Run run(place.q);
    const int firstRow = place.p * Schedule::rows;
    const Tile tile(firstRow, run.start);
    typename Tile::Samples samples = {};
    if (part.valid > 0 && run.valid > 0)
        tile.load(inputs.at[0], place.n, part.start, part.valid, samples);
    typename Y::Type* const target = static_cast<typename Y::Type*>(y)
                                     + (Problem::channelsFastest ? Y::offset(place.n, firstRow, run.start, part.start)
                                                                 : Y::offset(place.n, firstRow, part.start, run.start));
    WPK_UNROLL
    for (int i = 0; i < Schedule::rows; ++i)
    {
        if (Problem::p % Schedule::rows != 0 && firstRow + i >= Problem::p) // @rows_end
            break;
        typename Tile::Row outputs;
        tile.row(i, samples, outputs);
        if constexpr (Problem::channelsFastest)
        {
            WPK_UNROLL
            for (int j = 0; j < pixels; ++j)
            {
                if (Problem::q % pixels == 0 || j < run.valid) // @columns_end
                    storeRow<Y, V>(target, Y::offset(0, i, j, 0), part.valid, part.room, outputs[j]);
            }
        }
        else
        {
            static_assert(V == 1, "vectors run along the channels, y's neighbours do not");
            typename Y::Type line[pixels];
            WPK_UNROLL
            for (int j = 0; j < pixels; ++j)
                line[j] = outputs[j][0];
            storeRow<Y, pixels>(target, Y::offset(0, i, 0, 0), run.valid, run.room, line);
        }
    }
}

} // namespace wpk
