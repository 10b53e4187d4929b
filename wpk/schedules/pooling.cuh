// Max and average pooling, and where the largest element is; a thread computes V neighbouring channels of one output
// pixel.
//
// Problem: X over (n, h, w, c); Y and Operands over (n, p, q, c); Epilogue; findsPlaces, by columns or by rows, else
// isMax or average; sizes as in wpk/problems/pooling.py. channelsFastest says which way neighbouring threads go: along
// c, or along q. paddingC, paddingQ: zeros that follow y's last channel or column.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>

namespace wpk
{

namespace detail
{

// The maximum of a window that lies all in the padding, as in ONNX Runtime: the lowest number of the type.
template <class Number>
WPK_DEVICE Number lowestNumber()
{
    if constexpr (isSame<Number, double>)
        return -1.7976931348623157e308;
    else
        return -3.402823466e38f;
}

// Pools V channels from `c` on of the window of output (p, q). The taps of a window, or of a part that registers
// hold, are all under way before the first is used. The maximum hands a NaN on, as in PyTorch; in ONNX Runtime it
// depends on where in the window it lies, and onnx's reference leaves it out.
template <class Problem, int V, class Number>
WPK_DEVICE void poolWindow(const void* x, int n, int p, int q, int c, int valid, Number (&result)[V])
{
    using X = typename Problem::X;
    constexpr int taps = Problem::windowH * Problem::windowW, words = 160 * 4 / static_cast<int>(sizeof(Number));
    constexpr int atOnce = minOf(taps, maxOf(1, minOf(32, words / V)));
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
        result[v] = Problem::isMax ? asFloat(0xff800000u) : 0.0f; // -inf
    int counted = 0;
    bool any = false; // tap inside
    WPK_UNROLL
    for (int first = 0; first < taps; first += atOnce)
    {
        typename X::Type values[atOnce][V];
        bool inside[atOnce];
        WPK_UNROLL
        for (int i = 0; i < atOnce; ++i)
        {
            const int tap = first + i;
            const int h = p * Problem::strideH - Problem::padTop + tap / Problem::windowW * Problem::dilationH;
            const int w = q * Problem::strideW - Problem::padLeft + tap % Problem::windowW * Problem::dilationW;
            inside[i] = tap < taps && h >= 0 && h < Problem::h && w >= 0 && w < Problem::w;
            // Windows never start before the padding; ceil mode may take them beyond its end.
            const bool inPadded =
                tap < taps && h < Problem::h + Problem::padBottom && w < Problem::w + Problem::padRight;
            counted += Problem::countIncludePad ? inPadded : inside[i];
            if (inside[i])
                loadRow<X, V>(x, X::offset(n, h, w, c), valid, values[i]);
        }
        WPK_UNROLL
        for (int i = 0; i < atOnce; ++i)
        {
            WPK_UNROLL
            for (int v = 0; inside[i] && v < V; ++v)
            {
                const Number value = toNumber<Number>(values[i][v]); // @pooled_element
                if constexpr (Problem::isMax)
                    result[v] = larger(result[v], value);
                else
                    result[v] += value;
            }
            any |= inside[i];
        }
    }
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
    {
        if constexpr (!Problem::isMax)
            result[v] /= static_cast<Number>(maxOf(counted, 1));
        else if (!any)
            result[v] = lowestNumber<Number>();
    }
}

// Where the first of the largest elements of the window of output (p, q) is, in each of V channels from `c` on: its
// index in all of x. NaN is larger than every number. -1 where the window lies all in the padding.
template <class Problem, int V>
WPK_DEVICE void placesInWindow(const void* x, int n, int p, int q, int c, int valid, int64 (&result)[V])
{
    using X = typename Problem::X;
    using Number = Select<isSame<typename X::Type, double>, double, float>;
    Number largest[V] = {};
    int places[V];
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
        places[v] = -1;
    WPK_KEEP_LOOP
    for (int i = 0; i < Problem::windowH; ++i)
    {
        const int h = p * Problem::strideH - Problem::padTop + i * Problem::dilationH;
        if (h < 0 || h >= Problem::h)
            continue;
        WPK_KEEP_LOOP
        for (int j = 0; j < Problem::windowW; ++j)
        {
            const int w = q * Problem::strideW - Problem::padLeft + j * Problem::dilationW;
            if (w < 0 || w >= Problem::w)
                continue;
            Number values[V];
            loadRowAs<X, V>(x, X::offset(n, h, w, c), valid, values);
            const int place = Problem::byColumns ? h + w * Problem::h : h * Problem::w + w;
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
            {
                const bool isNan = values[v] != values[v], wasNan = largest[v] != largest[v];
                if (places[v] < 0 || (!wasNan && (isNan || values[v] > largest[v]))) // @first_of_equals
                {
                    largest[v] = values[v];
                    places[v] = place;
                }
            }
        }
    }
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
    {
        const int64 plane = static_cast<int64>(n) * Problem::channels + c + v;
        result[v] = places[v] < 0 ? -1 : plane * (Problem::h * Problem::w) + places[v];
    }
}

// What storeRow writes of one output pixel.
template <class Problem, int V>
WPK_DEVICE void poolPixel(
    const void* const* inputs, int n, int p, int q, int c, int valid, typename Problem::Y::Type (&row)[V])
{
    if constexpr (Problem::findsPlaces)
    {
        placesInWindow<Problem, V>(inputs[0], n, p, q, c, valid, row);
    }
    else
    {
        NumberOf<typename Problem::Epilogue> result[V];
        poolWindow<Problem, V>(inputs[0], n, p, q, c, valid, result);
        applyToRow<typename Problem::Epilogue, typename Problem::Operands, V>(result, inputs + 1, valid, n, p, q, c);
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            row[v] = fromNumber<typename Problem::Y::Type>(result[v]);
    }
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void pooling(Inputs<1 + Problem::Operands::count> inputs, int n, void* y)
{
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
    typename Y::Type row[V] = {};
    if (valid > 0)
        detail::poolPixel<Problem, V>(inputs.at, place.n, place.p, place.q, part.start, valid, row);
    storeRow<Y, V>(y, Y::offset(place.n, place.p, place.q, part.start), valid, part.room, row);
}

} // namespace wpk
