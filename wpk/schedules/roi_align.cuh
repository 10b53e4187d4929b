// Regions of images, each resampled to windows of one size; a thread computes V neighbouring channels of a window.
//
// Problem: X over (images, h, w, c); Rois over (n, 4): x1, y1, x2, y2; ImageOf over (n); Y and Operands over
// (n, p, q, c); Epilogue; isMax or average; halfPixel; sampling, 0 for grids that are as fine as pixels; scale as fp32
// bits (ONNX has it in fp32); all else in the numbers of the epilogue (`NumberOf`); sizes as in
// wpk/problems/roi_align.py. channelsFastest says which way neighbouring threads go: along c, or along q. paddingC,
// paddingQ: zeros that follow y's last channel or column.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>

namespace wpk
{

namespace detail
{

// Where the samples of a region's windows lie along an axis of Size pixels.
template <class Problem, int Windows, int Size>
struct RoiAxis
{
    using Number = NumberOf<typename Problem::Epilogue>;
    static constexpr Number mostSamples = 1e9f;
    bool finite;
    Number start, window; // of the region and of each window, in pixels
    int samples;          // of a window

    WPK_DEVICE RoiAxis(Number from, Number to)
    {
        finite = from - from == Number(0) && to - to == Number(0);
        const Number scale = asFloat(Problem::scale), back = Problem::halfPixel ? 0.5f : 0.0f;
        start = from * scale - back;
        const Number length = (to * scale - back) - start;
        window = (Problem::halfPixel ? length : largerNumber(length, Number(1))) / static_cast<Number>(Windows);
        samples = Problem::sampling;
        if constexpr (Problem::sampling == 0)
            samples = static_cast<int>(smaller(largerNumber(roundedUp(window), Number(0)), mostSamples));
    }

    WPK_DEVICE Number place(int at, int sample) const
    {
        const Number behind = (static_cast<Number>(sample) + Number(0.5)) * window / static_cast<Number>(samples);
        return start + static_cast<Number>(at) * window + behind;
    }

    // The samples of window `at` that may lie inside, from `first` on and before `end`: a region may be much larger
    // than the image. A grid of several samples that is as fine as pixels has them half a pixel apart at least.
    WPK_DEVICE void inside(int at, int& first, int& end) const
    {
        first = 0;
        end = samples;
        if (Problem::sampling > 0 || samples < 2)
            return;
        const Number apart = window / static_cast<Number>(samples), most = static_cast<Number>(samples);
        const Number before = -(start + static_cast<Number>(at) * window);
        const Number begin = roundedDown((before - Number(1)) / apart) - Number(2);
        const Number behind = roundedUp((before + Number(Size)) / apart) + Number(2);
        first = static_cast<int>(smaller(largerNumber(begin, Number(0)), most));
        end = static_cast<int>(smaller(largerNumber(behind, Number(0)), most));
    }
};

// The two pixels around a place, and how far it lies towards the second.
template <int Size, class Number>
struct RoiSample
{
    bool inside;
    int low = 0, high = 0;
    Number weight = 0;

    explicit WPK_DEVICE RoiSample(Number place) : inside(place >= Number(-1) && place <= static_cast<Number>(Size))
    {
        if (!inside)
            return;
        const Number forward = larger(place, Number(0));
        low = minOf(static_cast<int>(forward), Size - 1);
        high = minOf(low + 1, Size - 1);
        weight = low < Size - 1 ? forward - static_cast<Number>(low) : Number(0);
    }
};

template <class Problem, int V, class Number>
WPK_DEVICE void addRoiSample(const void* x, int image, const RoiSample<Problem::h, Number>& row,
    const RoiSample<Problem::w, Number>& column, int c, int valid, Number (&result)[V])
{
    using X = typename Problem::X;
    Number corners[4][V];
    loadRowAs<X, V>(x, X::offset(image, row.low, column.low, c), valid, corners[0]);
    loadRowAs<X, V>(x, X::offset(image, row.low, column.high, c), valid, corners[1]);
    loadRowAs<X, V>(x, X::offset(image, row.high, column.low, c), valid, corners[2]);
    loadRowAs<X, V>(x, X::offset(image, row.high, column.high, c), valid, corners[3]);
    const Number upper = Number(1) - row.weight, left = Number(1) - column.weight;
    const Number weights[4] = {upper * left, upper * column.weight, row.weight * left, row.weight * column.weight};
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
    {
        Number value = weights[0] * corners[0][v];
        WPK_UNROLL
        for (int i = 1; i < 4; ++i)
        {
            const Number other = weights[i] * corners[i][v];
            value = Problem::isMax ? larger(value, other) : value + other;
        }
        result[v] = Problem::isMax ? larger(result[v], value) : result[v] + value;
    }
}

// What window (p, q) of a region becomes.
template <class Problem, int V, class Rows, class Columns, class Number>
WPK_DEVICE void poolRoi(const void* x, int image, const Rows& rows, const Columns& columns, int p, int q, int c,
    int valid, Number (&result)[V])
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
        const RoiSample<Problem::h, Number> row(rows.place(p, i)); // @row_sampled
        WPK_KEEP_LOOP
        for (int j = left; j < right; ++j)
        {
            const RoiSample<Problem::w, Number> column(columns.place(q, j));
            if (row.inside && column.inside) // @inside_only
                addRoiSample<Problem, V>(x, image, row, column, c, valid, result);
            else
                leavesOut = true;
        }
    }
    const Number count = static_cast<Number>(rows.samples) * static_cast<Number>(columns.samples);
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
    {
        if constexpr (!Problem::isMax)
            result[v] /= larger(count, Number(1));
        else if (leavesOut && !empty)
            result[v] = larger(result[v], Number(0));
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
    NumberOf<typename Problem::Epilogue> result[V] = {};
    if (valid > 0)
    {
        NumberOf<typename Problem::Epilogue> sides[4];
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
