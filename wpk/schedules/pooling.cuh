// Max and average pooling; a thread computes V neighbouring channels of one output pixel.
//
// Problem: X over (n, h, w, c); Y and Operands over (n, p, q, c); Epilogue; kMax or average; sizes as in
// wpk/problems/pooling.py. channelsFastest says which way neighbouring threads go: along c, or along q.
// paddingC, paddingQ: zeros that follow y's last channel or column.
#pragma once

#include <wpk/kernels/early_launch.cuh>
#include <wpk/kernels/index.cuh>
#include <wpk/kernels/tensor.cuh>

namespace wpk
{

namespace detail
{

// The maximum of a window that lies all in the padding, as in ONNX Runtime.
constexpr float kLowest = -3.402823466e38f;

// Pools V channels from `c` on of the window of output (p, q). The taps of a window, or of a part that registers
// hold, are all under way before the first is used. The maximum hands a NaN on, as in PyTorch; in ONNX Runtime it
// depends on where in the window it lies, and onnx's reference leaves it out.
template <class Problem, int V>
WPK_DEVICE void poolWindow(const void* x, int n, int p, int q, int c, int valid, float (&result)[V])
{
    using X = typename Problem::X;
    constexpr int taps = Problem::windowH * Problem::windowW;
    constexpr int atOnce = minOf(taps, maxOf(1, minOf(32, 160 / V)));
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
                const float value = toFloat(values[i][v]);
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
            result[v] /= static_cast<float>(maxOf(counted, 1));
        else if (!any)
            result[v] = kLowest;
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
    float result[V] = {};
    if (valid > 0)
    {
        detail::poolWindow<Problem, V>(inputs.at[0], place.n, place.p, place.q, part.start, valid, result);
        applyToRow<typename Problem::Epilogue, typename Problem::Operands, V>(
            result, inputs.at + 1, valid, place.n, place.p, place.q, part.start);
    }
    const int64 target = Y::offset(place.n, place.p, place.q, part.start);
    storeRowOf<Y, V>(y, target, valid, part.room, result);
}

} // namespace wpk
