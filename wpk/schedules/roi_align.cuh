// Regions of images, each resampled to windows of one size; a thread computes V neighbouring channels of a window.
//
// Problem: X over (images, h, w, c); Rois over (n, 4): x1, y1, x2, y2; ImageOf over (n); Y and Operands over
// (n, p, q, c); Epilogue; isMax or average; halfPixel; sampling, 0 for grids that are as fine as pixels; scale as fp32
// bits; sizes as in wpk/problems/roi_align.py. channelsFastest says which way neighbouring threads go: along c, or
// along q. paddingC, paddingQ: zeros that follow y's last channel or column.
#pragma once

#include <wpk/kernels/early_launch.cuh>
#include <wpk/kernels/index.cuh>
#include <wpk/kernels/tensor.cuh>

namespace wpk
{

namespace detail
{

// Where the samples of a region's windows lie along an axis of Size pixels.
template <class Problem, int Windows, int Size>
struct RoiAxis
{
    static constexpr float largest = 3.402823466e38f;
    static constexpr float mostSamples = 1e9f;
    bool finite;
    float start, window; // of the region and of each window, in pixels
    int samples;         // of a window

    WPK_DEVICE RoiAxis(float from, float to)
    {
        finite = fabsf(from) <= largest && fabsf(to) <= largest;
        const float scale = asFloat(Problem::scale), back = Problem::halfPixel ? 0.5f : 0.0f;
        start = from * scale - back;
        const float length = (to * scale - back) - start;
        window = (Problem::halfPixel ? length : fmaxf(length, 1.0f)) / static_cast<float>(Windows);
        samples = Problem::sampling;
        if constexpr (Problem::sampling == 0)
            samples = static_cast<int>(fminf(fmaxf(ceilf(window), 0.0f), mostSamples));
    }

    WPK_DEVICE float place(int at, int sample) const
    {
        const float behind = (static_cast<float>(sample) + 0.5f) * window / static_cast<float>(samples);
        return start + static_cast<float>(at) * window + behind;
    }

    // The samples of window `at` that may lie inside, from `first` on and before `end`: a region may be much larger
    // than the image. A grid of several samples that is as fine as pixels has them half a pixel apart at least.
    WPK_DEVICE void inside(int at, int& first, int& end) const
    {
        first = 0;
        end = samples;
        if (Problem::sampling > 0 || samples < 2)
            return;
        const float apart = window / static_cast<float>(samples), most = static_cast<float>(samples);
        const float before = -(start + static_cast<float>(at) * window);
        first = static_cast<int>(fminf(fmaxf(floorf((before - 1.0f) / apart) - 2.0f, 0.0f), most));
        end = static_cast<int>(fminf(fmaxf(ceilf((before + Size) / apart) + 2.0f, 0.0f), most));
    }
};

// The two pixels around a place, and how far it lies towards the second.
template <int Size>
struct RoiSample
{
    bool inside;
    int low = 0, high = 0;
    float weight = 0.0f;

    explicit WPK_DEVICE RoiSample(float place) : inside(place >= -1.0f && place <= static_cast<float>(Size))
    {
        if (!inside)
            return;
        const float forward = fmaxf(place, 0.0f);
        low = minOf(static_cast<int>(forward), Size - 1);
        high = minOf(low + 1, Size - 1);
        weight = low < Size - 1 ? forward - static_cast<float>(low) : 0.0f;
    }
};

template <class Problem, int V>
WPK_DEVICE void addRoiSample(const void* x, int image, const RoiSample<Problem::h>& row,
    const RoiSample<Problem::w>& column, int c, int valid, float (&result)[V])
{
    using X = typename Problem::X;
    float corners[4][V];
    loadRowAs<X, V>(x, X::offset(image, row.low, column.low, c), valid, corners[0]);
    loadRowAs<X, V>(x, X::offset(image, row.low, column.high, c), valid, corners[1]);
    loadRowAs<X, V>(x, X::offset(image, row.high, column.low, c), valid, corners[2]);
    loadRowAs<X, V>(x, X::offset(image, row.high, column.high, c), valid, corners[3]);
    const float upper = 1.0f - row.weight, left = 1.0f - column.weight;
    const float weights[4] = {upper * left, upper * column.weight, row.weight * left, row.weight * column.weight};
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
    {
        float value = weights[0] * corners[0][v];
        WPK_UNROLL
        for (int i = 1; i < 4; ++i)
        {
            const float other = weights[i] * corners[i][v];
            value = Problem::isMax ? larger(value, other) : value + other;
        }
        result[v] = Problem::isMax ? larger(result[v], value) : result[v] + value;
    }
}

// What window (p, q) of a region becomes.
template <class Problem, int V, class Rows, class Columns>
WPK_DEVICE void poolRoi(const void* x, int image, const Rows& rows, const Columns& columns, int p, int q, int c,
    int valid, float (&result)[V])
{
    int top, bottom, left, right;
    rows.inside(p, top, bottom);
    columns.inside(q, left, right);
    bool leavesOut = bottom - top < rows.samples || right - left < columns.samples; // samples that are 0
    const bool empty = rows.samples <= 0 || columns.samples <= 0;
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
        result[v] = Problem::isMax && !empty ? asFloat(0xff800000u) : 0.0f; // -inf
    WPK_KEEP_LOOP
    for (int i = top; i < bottom; ++i)
    {
        const RoiSample<Problem::h> row(rows.place(p, i)); // @row_sampled
        WPK_KEEP_LOOP
        for (int j = left; j < right; ++j)
        {
            const RoiSample<Problem::w> column(columns.place(q, j));
            if (row.inside && column.inside) // @inside_only
                addRoiSample<Problem, V>(x, image, row, column, c, valid, result);
            else
                leavesOut = true;
        }
    }
    const float count = static_cast<float>(rows.samples) * static_cast<float>(columns.samples);
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
    {
        if constexpr (!Problem::isMax)
            result[v] /= fmaxf(count, 1.0f);
        else if (leavesOut && !empty)
            result[v] = larger(result[v], 0.0f);
    }
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void roiAlign(Inputs<3 + Problem::Operands::count> inputs, int n, void* y)
{
    using Rois = typename Problem::Rois;
    using ImageOf = typename Problem::ImageOf;
    using Y = typename Problem::Y;
    constexpr int V = Schedule::vector;
    using Part = RowPart<Problem::channels, Problem::paddingC, V>;
    using Place =
        PixelDomain<Problem::wide, Problem::channelsFastest, Problem::p, Problem::q + Problem::paddingQ, Part::chunks>;
    const int64 item = firstItem<Schedule::threads>();
    startIfEarly<Schedule>();    // @previous_awaited
    if (item >= Place::items(n)) // @idle_threads_end
        return;
    const Place place(item);
    const Part part(place.chunk);
    const int valid = place.q < Problem::q ? part.valid : 0;
    float result[V] = {};
    if (valid > 0)
    {
        float sides[4];
        loadRowAs<Rois, 4>(inputs.at[1], Rois::offset(place.n, 0), 4, sides);
        const detail::RoiAxis<Problem, Problem::p, Problem::h> rows(sides[1], sides[3]);
        const detail::RoiAxis<Problem, Problem::q, Problem::w> columns(sides[0], sides[2]);
        const auto* const images = static_cast<const typename ImageOf::Type*>(inputs.at[2]);
        const auto image = load<typename ImageOf::Type, 1>(images + ImageOf::offset(place.n))[0];
        if (image >= 0 && image < Problem::images && rows.finite && columns.finite) // @image_exists
        {
            detail::poolRoi<Problem, V>(
                inputs.at[0], static_cast<int>(image), rows, columns, place.p, place.q, part.start, valid, result);
        }
        else
        {
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
                result[v] = asFloat(0x7fc00000u); // NaN, which a check cannot miss
        }
        applyToRow<typename Problem::Epilogue, typename Problem::Operands, V>(
            result, inputs.at + 3, valid, place.n, place.p, place.q, part.start);
    }
    const int64 target = Y::offset(place.n, place.p, place.q, part.start);
    storeRowOf<Y, V>(y, target, valid, part.room, result);
}

} // namespace wpk
