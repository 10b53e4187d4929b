// Resampling of two spatial axes, nearest or linear; a thread computes V neighbouring channels of a pixel.
//
// Problem: X over (n, h, w, c); Y over (n, p, q, c); linear; coordinates (wpk/problems/movement.py's
// ResizeCoordinates) and nearest (NearestMode) by their order there; inverse scales as fp32 bits.
// paddingC, paddingQ: zeros that follow y's last channel or column.
#pragma once

#include <wpk/kernels/early_launch.cuh>
#include <wpk/kernels/index.cuh>
#include <wpk/kernels/tensor.cuh>

namespace wpk
{

enum class ResizeCoordinates
{
    halfPixel,
    pytorchHalfPixel,
    alignCorners,
    asymmetric
};
enum class NearestMode
{
    roundPreferFloor,
    roundPreferCeil,
    floor,
    ceil
};

namespace detail
{

// Where output index i of `to` lies in the input's `from` samples; `scale` is output size / input size.
template <ResizeCoordinates Mode>
WPK_DEVICE float sourcePosition(int i, int from, int to, float scale)
{
    const float x = static_cast<float>(i);
    if constexpr (Mode == ResizeCoordinates::alignCorners)
    {
        return to == 1 ? 0.0f : x * static_cast<float>(from - 1) / static_cast<float>(to - 1);
    }
    else if constexpr (Mode == ResizeCoordinates::asymmetric)
    {
        return x / scale;
    }
    else
    {
        if (Mode == ResizeCoordinates::pytorchHalfPixel && to == 1)
            return 0.0f;
        return (x + 0.5f) / scale - 0.5f;
    }
}

template <NearestMode Mode>
WPK_DEVICE int nearestSample(float position, int from)
{
    float sample;
    if constexpr (Mode == NearestMode::roundPreferFloor)
    {
        sample = ceilf(position - 0.5f);
    }
    else if constexpr (Mode == NearestMode::roundPreferCeil)
    {
        sample = floorf(position + 0.5f);
    }
    else
    {
        sample = Mode == NearestMode::floor ? floorf(position) : ceilf(position);
    }
    return minOf(maxOf(static_cast<int>(sample), 0), from - 1);
}

// The two samples round a position, and how far it lies towards the second.
struct Between
{
    int low, high;
    float weight;

    WPK_DEVICE Between(float position, int from)
    {
        const float inside = fminf(fmaxf(position, 0.0f), static_cast<float>(from - 1));
        low = static_cast<int>(inside);
        high = minOf(low + 1, from - 1);
        weight = inside - static_cast<float>(low);
    }
};

template <class Problem, int V>
WPK_DEVICE void interpolate(const void* x, int n, float h, float w, int c, int valid, float (&result)[V])
{
    using X = typename Problem::X;
    const Between rows(h, Problem::h), columns(w, Problem::w);
    float corners[4][V];
    loadRowAs<X, V>(x, X::offset(n, rows.low, columns.low, c), valid, corners[0]);
    loadRowAs<X, V>(x, X::offset(n, rows.low, columns.high, c), valid, corners[1]);
    loadRowAs<X, V>(x, X::offset(n, rows.high, columns.low, c), valid, corners[2]);
    loadRowAs<X, V>(x, X::offset(n, rows.high, columns.high, c), valid, corners[3]);
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
    {
        const float upper = corners[0][v] * (1.0f - columns.weight) + corners[1][v] * columns.weight;
        const float lower = corners[2][v] * (1.0f - columns.weight) + corners[3][v] * columns.weight;
        result[v] = upper * (1.0f - rows.weight) + lower * rows.weight;
    }
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void resize(Inputs<1> inputs, int n, void* y)
{
    using X = typename Problem::X;
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
    const int64 target = Y::offset(place.n, place.p, place.q, part.start);
    constexpr auto mode = Problem::coordinates;
    const float h = detail::sourcePosition<mode>(place.p, Problem::h, Problem::p, asFloat(Problem::scaleH));
    const float w = detail::sourcePosition<mode>(place.q, Problem::w, Problem::q, asFloat(Problem::scaleW));
    if constexpr (Problem::linear)
    {
        float result[V] = {};
        if (valid > 0)
            detail::interpolate<Problem, V>(inputs.at[0], place.n, h, w, part.start, valid, result);
        storeRowOf<Y, V>(y, target, valid, part.room, result);
    }
    else
    {
        const int row = detail::nearestSample<Problem::nearest>(h, Problem::h);
        const int column = detail::nearestSample<Problem::nearest>(w, Problem::w);
        typename X::Type values[V] = {};
        if (valid > 0)
        {
            loadRow<X, V>(inputs.at[0], X::offset(place.n, row, column, part.start), valid, values);
        }
        typename Y::Type moved[V];
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            moved[v] = convertElement<typename Y::Type>(values[v]);
        storeRow<Y, V>(y, target, valid, part.room, moved);
    }
}

} // namespace wpk
