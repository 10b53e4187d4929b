// Resampling of two spatial axes, nearest or linear; a thread computes V neighbouring channels of a pixel.
//
// Problem: X over (n, h, w, c); Y over (n, p, q, c); linear; coordinates (wpk/problems/movement.py's
// ResizeCoordinates) and nearest (NearestMode) by their order there; scales as the bits of numbers. Numbers are fp32,
// fp64 where x is that: positions, weights and what is interpolated.
// paddingC, paddingQ: zeros that follow y's last channel or column.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>

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

// A scale of its bits.
template <class Number, class Bits>
WPK_DEVICE Number scaleOf(Bits bits)
{
    if constexpr (isSame<Number, double>)
        return asDouble(bits);
    else
        return asFloat(bits);
}

// Where output index i of `to` lies in the input's `from` samples; `scale` is output size / input size.
template <ResizeCoordinates Mode, class Number>
WPK_DEVICE Number sourcePosition(int i, int from, int to, Number scale)
{
    const Number x = static_cast<Number>(i);
    if constexpr (Mode == ResizeCoordinates::alignCorners)
    {
        return to == 1 ? Number(0) : x * static_cast<Number>(from - 1) / static_cast<Number>(to - 1);
    }
    else if constexpr (Mode == ResizeCoordinates::asymmetric)
    {
        return x / scale;
    }
    else
    {
        if (Mode == ResizeCoordinates::pytorchHalfPixel && to == 1)
            return Number(0);
        return (x + Number(0.5)) / scale - Number(0.5);
    }
}

template <NearestMode Mode, class Number>
WPK_DEVICE int nearestSample(Number position, int from)
{
    Number sample;
    if constexpr (Mode == NearestMode::roundPreferFloor)
    {
        sample = roundedUp(position - Number(0.5));
    }
    else if constexpr (Mode == NearestMode::roundPreferCeil)
    {
        sample = roundedDown(position + Number(0.5));
    }
    else
    {
        sample = Mode == NearestMode::floor ? roundedDown(position) : roundedUp(position);
    }
    return minOf(maxOf(static_cast<int>(sample), 0), from - 1);
}

// The two samples round a position, and how far it lies towards the second.
template <class Number>
struct Between
{
    int low, high;
    Number weight;

    WPK_DEVICE Between(Number position, int from)
    {
        const Number inside = smaller(largerNumber(position, Number(0)), static_cast<Number>(from - 1));
        low = static_cast<int>(inside);
        high = minOf(low + 1, from - 1);
        weight = inside - static_cast<Number>(low); // @between_pixels
    }
};

template <class Problem, int V, class Number>
WPK_DEVICE void interpolate(const void* x, int n, Number h, Number w, int c, int valid, Number (&result)[V])
{
    using X = typename Problem::X;
    const Between<Number> rows(h, Problem::h), columns(w, Problem::w);
    Number corners[4][V];
    loadRowAs<X, V>(x, X::offset(n, rows.low, columns.low, c), valid, corners[0]);
    loadRowAs<X, V>(x, X::offset(n, rows.low, columns.high, c), valid, corners[1]);
    loadRowAs<X, V>(x, X::offset(n, rows.high, columns.low, c), valid, corners[2]);
    loadRowAs<X, V>(x, X::offset(n, rows.high, columns.high, c), valid, corners[3]);
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
    {
        const Number upper = corners[0][v] * (Number(1) - columns.weight) + corners[1][v] * columns.weight;
        const Number lower = corners[2][v] * (Number(1) - columns.weight) + corners[3][v] * columns.weight;
        result[v] = upper * (Number(1) - rows.weight) + lower * rows.weight;
    }
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void resize(Inputs<1> inputs, int n, void* y)
{
    using X = typename Problem::X;
    using Y = typename Problem::Y;
    using Number = Select<isSame<typename X::Type, double>, double, float>;
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
    const Number h =
        detail::sourcePosition<mode>(place.p, Problem::h, Problem::p, detail::scaleOf<Number>(Problem::scaleH));
    const Number w =
        detail::sourcePosition<mode>(place.q, Problem::w, Problem::q, detail::scaleOf<Number>(Problem::scaleW));
    if constexpr (Problem::linear)
    {
        Number result[V] = {};
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
