// Depthwise convolution whose threads walk down an image, for large filters and many images: an input row is loaded and
// converted once for all output rows that it is under, of which a thread holds the sums, as many as the filter has
// rows.
//
// A thread has V neighbouring channels of `pixels` columns of a strip of `rows` output rows. `lanes` neighbouring
// threads have neighbouring channels; all others of a block have the same ones in other places, so that its filters lie
// in shared memory, as floats. They are constants: they are brought there before the kernel in front has ended.
//
// Grid: runs of threads / lanes tiles (image, strip, columns), runs of lanes * V channels. Problem is named by
// depthwise.py; strides and dilations of the rows are 1.
#pragma once

#include <wpk/schedules/depthwise.cuh>

namespace wpk
{

namespace detail
{

// What depthwise.cuh knows of a thread's tile, which is one row of the strip here.
template <class Schedule>
struct OneRowOf
{
    static constexpr int vector = Schedule::vector, pixels = Schedule::pixels, rows = 1;
};

template <class Problem, class Schedule>
struct DepthwiseStrip
{
    using Tile = DepthwiseTile<Problem, OneRowOf<Schedule>>;
    static constexpr int V = Schedule::vector, rows = Schedule::rows, lanes = Schedule::lanes;
    static constexpr int threads = Schedule::threads, channels = lanes * V; // of a block
    static constexpr int columnTiles = ceilDivide(Problem::q, Schedule::pixels), strips = ceilDivide(Problem::p, rows);
    static constexpr int tiles = columnTiles * strips; // of an image
    static_assert(Problem::strideH == 1 && Problem::dilationH == 1, "an output row begins where the one above has");
    static_assert(Schedule::shared_bytes == Tile::taps * channels * 4, "Python and C++ count the same shared memory");
};

// The filters of a block's channels to shared memory; zeros behind the last channel.
template <class Problem, class Strip>
WPK_DEVICE void stageFilters(float* target, const void* weight, int firstChannel)
{
    using Weight = typename Problem::Weight;
    constexpr int V = Strip::V, kItems = Strip::Tile::taps * Strip::lanes;
    for (int item = static_cast<int>(threadIdx.x); item < kItems; item += Strip::threads)
    {
        const int tap = item / Strip::lanes, lane = item % Strip::lanes;
        const int k = firstChannel + lane * V, valid = minOf(V, Problem::channels - k);
        float row[V] = {};
        if (valid > 0)
            loadRowAs<Weight, V>(weight, Weight::offset(tap / Problem::filterW, tap % Problem::filterW, k), valid, row);
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            target[tap * Strip::channels + lane * V + v] = row[v];
    }
}

// An input row under a thread's columns; zeros outside of the image.
template <class Problem, class Strip>
WPK_DEVICE void loadStripRow(const void* x, int n, int h, int q, const typename Strip::Tile::Part& part,
    typename Strip::Tile::Inputs (&values)[Strip::Tile::Columns::span])
{
    const bool inside = h >= 0 && h < Problem::h && part.valid > 0; // @row_exists
    loadColumns<Problem, typename Strip::Tile>(x, n, h, inside, q, 0, part.start, part.valid, values);
}

// V weights of a tap, four at a time.
template <int V>
WPK_DEVICE void loadFilter(const float* filter, float (&weights)[V])
{
    constexpr int kAtOnce = minOf(V, 4);
    WPK_UNROLL
    for (int first = 0; first < V; first += kAtOnce)
    {
        const auto some = load<float, kAtOnce>(filter + first);
        WPK_UNROLL
        for (int v = 0; v < kAtOnce; ++v)
            weights[first + v] = some[v];
    }
}

// sums[filterH - 1 - r] += the input row by filter row r, for each output row of the strip that it is under; `row`
// counts the strip's input rows.
template <class Problem, class Strip>
WPK_DEVICE void addStripRow(const typename Strip::Tile::Inputs (&values)[Strip::Tile::Columns::span], int row,
    const float* filters, typename Strip::Tile::Sums (&sums)[Problem::filterH])
{
    using Columns = typename Strip::Tile::Columns;
    constexpr int V = Strip::V;
    float inputs[Columns::span][V];
    WPK_UNROLL
    for (int i = 0; i < Columns::span; ++i)
    {
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            inputs[i][v] = values[i][v];
    }
    WPK_UNROLL
    for (int r = 0; r < Problem::filterH; ++r)
    {
        if (row - r < 0 || row - r >= Strip::rows)
            continue;
        WPK_UNROLL
        for (int s = 0; s < Problem::filterW; ++s)
        {
            float weights[V];
            loadFilter<V>(filters + (r * Problem::filterW + s) * Strip::channels, weights);
            WPK_UNROLL
            for (int pixel = 0; pixel < Strip::Tile::pixels; ++pixel)
            {
                WPK_UNROLL
                for (int v = 0; v < V; ++v)
                {
                    float& sum = sums[Problem::filterH - 1 - r][pixel][v];
                    sum = fmaf(inputs[pixel * Problem::strideW + s * Problem::dilationW][v], weights[v], sum);
                }
            }
        }
    }
}

// The sums of the next output row become the first; zeros follow the last. Element by element: of whole rows copied by
// memcpy, NVRTC 13.0 keeps two sums in one register.
template <class Strip, int Rows>
WPK_DEVICE void moveUp(typename Strip::Tile::Sums (&sums)[Rows])
{
    WPK_UNROLL
    for (int i = 0; i < Rows; ++i)
    {
        WPK_UNROLL
        for (int pixel = 0; pixel < Strip::Tile::pixels; ++pixel)
        {
            WPK_UNROLL
            for (int v = 0; v < Strip::V; ++v)
                sums[i][pixel][v] = i + 1 < Rows ? sums[i + 1][pixel][v] : 0.0f;
        }
    }
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void depthwiseRows(Inputs<2 + Problem::Operands::count> inputs, int n, void* y)
{
    using Strip = detail::DepthwiseStrip<Problem, Schedule>;
    using Tile = typename Strip::Tile;
    using Columns = typename Tile::Columns;
    constexpr int kFilterRows = Problem::filterH;
    WPK_SHARED(float, filters);
    const int lane = static_cast<int>(threadIdx.x) % Strip::lanes;
    const int chunk = static_cast<int>(blockIdx.y) * Strip::lanes + lane;
    const int tile =
        static_cast<int>(blockIdx.x) * (Strip::threads / Strip::lanes) + static_cast<int>(threadIdx.x) / Strip::lanes;
    const bool exists = tile < n * Strip::tiles && chunk < Tile::Part::chunks;
    const int place = exists ? tile : 0;
    const int first = place / Strip::columnTiles % Strip::strips * Strip::rows;
    const typename Tile::Part part(exists ? chunk : 0);
    detail::DepthwiseEnd<Problem, Tile> end{
        inputs.at + 2, y, place / Strip::tiles, first, place % Strip::columnTiles * Tile::pixels, part, {}};
    releaseIfEarly<Schedule>();
    end.prefetch();
    detail::stageFilters<Problem, Strip>(filters, inputs.at[1], static_cast<int>(blockIdx.y) * Strip::channels);
    waitIfEarly<Schedule>(); // @previous_awaited
    __syncthreads();         // @filters_there
    if (!exists)
        return;
    end.begin();
    typename Tile::Sums sums[kFilterRows] = {};
    typename Tile::Inputs values[Columns::span];
    detail::loadStripRow<Problem, Strip>(inputs.at[0], end.n, first - Problem::padTop, end.q, part, values);
    WPK_KEEP_LOOP
    for (int row = 0; row < Strip::rows + kFilterRows - 1; ++row)
    {
        typename Tile::Inputs next[Columns::span];
        detail::loadStripRow<Problem, Strip>(inputs.at[0], end.n, first - Problem::padTop + row + 1, end.q, part, next);
        detail::addStripRow<Problem, Strip>(values, row, filters + lane * Strip::V, sums);
        const int done = row - (kFilterRows - 1);
        if (done >= 0 && first + done < Problem::p) // @row_stored
        {
            typename detail::DepthwiseEnd<Problem, Tile>::Operands operands[Tile::pixels];
            end.p = first + done;
            end.load(0, operands);
            end.store(0, sums[0], operands);
        }
        detail::moveUp<Strip>(sums);
        WPK_UNROLL
        for (int i = 0; i < Columns::span; ++i)
            values[i] = next[i];
    }
}

} // namespace wpk
