// Depthwise convolution, plain or transposed, in fp32; a thread computes V neighbouring channels of several
// output pixels along q, so that an input column and a row of weights are loaded once for all of them.
//
// Problem: X over (n, h, w, c); Y and Operands over (n, p, q, k); Weight over (r, s, k), packed; Epilogue;
// sizes as in wpk/problems/convolution.py. Output channel k reads input channel k / multiplier.
// paddingC, paddingQ: zeros that follow y's last channel or column.
#pragma once

#include <wpk/kernels/early_launch.cuh>
#include <wpk/kernels/index.cuh>
#include <wpk/kernels/tensor.cuh>

namespace wpk
{

namespace detail
{

// The inputs of V output channels from k on, at one pixel.
template <class Problem, int V>
WPK_DEVICE void loadChannels(const void* x, int n, int h, int w, int k, int valid, float (&values)[V])
{
    using X = typename Problem::X;
    if constexpr (Problem::multiplier == 1)
    {
        loadRowAsFloat<X, V>(x, X::offset(n, h, w, k), valid, values);
    }
    else
    {
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
        {
            const int c = minOf(k + v, Problem::channels - 1) / Problem::multiplier;
            values[v] = toFloat(static_cast<const typename X::Type*>(x)[X::offset(n, h, w, c)]);
        }
    }
}

// Weights of V channels as they lie in memory: they are loaded before the wait of an early launch, and nothing is to
// be made of them in front of it.
template <class Problem, int V>
using Weights = typename Problem::Weight::Type[V];

// Input columns under the windows of Pixels outputs, and whether one of them is under a tap.
template <class Problem, int Pixels>
constexpr int inputColumns = (Pixels - 1) * Problem::strideW + (Problem::filterW - 1) * Problem::dilationW + 1;

template <class Problem, int Pixels>
WPK_DEVICE constexpr bool isUsed(int column)
{
    for (int s = 0; s < Problem::filterW; ++s)
    {
        const int steps = column - s * Problem::dilationW;
        if (steps >= 0 && steps % Problem::strideW == 0 && steps / Problem::strideW < Pixels)
            return true;
    }
    return false;
}

// Whether a thread can hold all inputs and weights of its outputs, which 32 loads bring at most.
template <class Problem, int V, int Pixels>
constexpr bool holdsWindow = !Problem::transposed && Problem::filterH * inputColumns<Problem, Pixels> <= 32
                             && V * Problem::filterH * (Problem::filterW + inputColumns<Problem, Pixels>) <= 160;

// Sums of Pixels outputs from q on where it can: all loads are under way before the first is used.
template <class Problem, int V, int Pixels>
WPK_DEVICE void convolveWindow(const void* x, int n, int p, int q, int k, int valid,
    const Weights<Problem, V> (&weights)[Problem::filterH][Problem::filterW], float (&sums)[Pixels][V])
{
    constexpr int columns = inputColumns<Problem, Pixels>;
    float values[Problem::filterH][columns][V] = {};
    WPK_UNROLL
    for (int r = 0; r < Problem::filterH; ++r)
    {
        const int h = p * Problem::strideH - Problem::padTop + r * Problem::dilationH;
        WPK_UNROLL
        for (int column = 0; column < columns; ++column)
        {
            const int w = q * Problem::strideW - Problem::padLeft + column;
            if (isUsed<Problem, Pixels>(column) && h >= 0 && h < Problem::h && w >= 0 && w < Problem::w)
                loadChannels<Problem, V>(x, n, h, w, k, valid, values[r][column]);
        }
    }
    WPK_UNROLL
    for (int r = 0; r < Problem::filterH; ++r)
    {
        WPK_UNROLL
        for (int s = 0; s < Problem::filterW; ++s)
        {
            WPK_UNROLL
            for (int pixel = 0; pixel < Pixels; ++pixel)
            {
                WPK_UNROLL
                for (int v = 0; v < V; ++v)
                {
                    const float value = values[r][pixel * Problem::strideW + s * Problem::dilationW][v];
                    sums[pixel][v] = fmaf(value, toFloat(weights[r][s][v]), sums[pixel][v]);
                }
            }
        }
    }
}

// One filter row of Pixels outputs: every input column is loaded once and goes to all that use it.
template <class Problem, int V, int Pixels>
WPK_DEVICE void addFilterRow(const void* x, int n, int h, int q, int k, int valid,
    const Weights<Problem, V> (&weights)[Problem::filterW], float (&sums)[Pixels][V])
{
    WPK_UNROLL
    for (int column = 0; column < inputColumns<Problem, Pixels>; ++column)
    {
        const int w = q * Problem::strideW - Problem::padLeft + column;
        if (!isUsed<Problem, Pixels>(column) || w < 0 || w >= Problem::w)
            continue;
        float values[V];
        loadChannels<Problem, V>(x, n, h, w, k, valid, values);
        WPK_UNROLL
        for (int pixel = 0; pixel < Pixels; ++pixel)
        {
            WPK_UNROLL
            for (int s = 0; s < Problem::filterW; ++s)
            {
                if (pixel * Problem::strideW + s * Problem::dilationW != column)
                    continue;
                WPK_UNROLL
                for (int v = 0; v < V; ++v)
                    sums[pixel][v] = fmaf(values[v], toFloat(weights[s][v]), sums[pixel][v]);
            }
        }
    }
}

// The same for a transposed convolution, where only every strideW-th output uses a given tap.
template <class Problem, int V, int Pixels>
WPK_DEVICE void addTransposedRow(const void* x, int n, int h, int q, int k, int valid,
    const Weights<Problem, V> (&weights)[Problem::filterW], float (&sums)[Pixels][V])
{
    WPK_UNROLL
    for (int pixel = 0; pixel < Pixels; ++pixel)
    {
        WPK_UNROLL
        for (int s = 0; s < Problem::filterW; ++s)
        {
            const int reach = q + pixel + Problem::padLeft - s * Problem::dilationW;
            if (reach < 0 || reach % Problem::strideW != 0 || reach / Problem::strideW >= Problem::w)
                continue;
            float values[V];
            loadChannels<Problem, V>(x, n, h, reach / Problem::strideW, k, valid, values);
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
                sums[pixel][v] = fmaf(values[v], toFloat(weights[s][v]), sums[pixel][v]);
        }
    }
}

// Input row that filter row r of output row p reads, or -1 where it lies outside.
template <class Problem>
WPK_DEVICE int inputRow(int p, int r)
{
    int h;
    if constexpr (Problem::transposed)
    {
        const int reach = p + Problem::padTop - r * Problem::dilationH;
        h = reach >= 0 && reach % Problem::strideH == 0 ? reach / Problem::strideH : -1;
    }
    else
    {
        h = p * Problem::strideH - Problem::padTop + r * Problem::dilationH;
    }
    return h < Problem::h ? h : -1;
}

// The weights of filter row r.
template <class Problem, int V>
WPK_DEVICE void loadFilterRow(
    const void* weight, int r, int k, int valid, Weights<Problem, V> (&weights)[Problem::filterW])
{
    using Weight = typename Problem::Weight;
    WPK_UNROLL
    for (int s = 0; s < Problem::filterW; ++s)
        loadRow<Weight, V>(weight, Weight::offset(r, s, k), valid, weights[s]);
}

// Sums of Pixels outputs from q on, row by row. `weights` holds the filter's first row.
template <class Problem, int V, int Pixels>
WPK_DEVICE void convolveRows(const void* x, const void* weight, int n, int p, int q, int k, int valid,
    Weights<Problem, V> (&weights)[Problem::filterW], float (&sums)[Pixels][V])
{
    for (int r = 0; r < Problem::filterH; ++r)
    {
        const int h = inputRow<Problem>(p, r);
        if (h < 0)
            continue;
        if (r > 0)
            loadFilterRow<Problem, V>(weight, r, k, valid, weights);
        if constexpr (Problem::transposed)
        {
            addTransposedRow<Problem, V, Pixels>(x, n, h, q, k, valid, weights, sums);
        }
        else
        {
            addFilterRow<Problem, V, Pixels>(x, n, h, q, k, valid, weights, sums);
        }
    }
}

// The epilogue's operands of Pixels outputs, loaded ahead where they are few.
template <class Problem, int V, int Pixels>
struct PixelOperands
{
    using Rows = OperandRows<typename Problem::Operands, V>;
    static constexpr bool kAhead = V * Pixels * Rows::count <= 64;
    Rows rows[kAhead ? Pixels : 1];

    WPK_DEVICE void load(const void* const* pointers, int valid, int n, int p, int q, int k)
    {
        WPK_UNROLL
        for (int pixel = 0; kAhead && pixel < Pixels; ++pixel)
        {
            if (valid > 0 && q + pixel < Problem::q)
                rows[pixel].load(pointers, valid, n, p, q + pixel, k);
        }
    }

    WPK_DEVICE void apply(
        float (&row)[V], const void* const* pointers, int pixel, int valid, int n, int p, int q, int k)
    {
        if constexpr (!kAhead)
            rows[0].load(pointers, valid, n, p, q + pixel, k);
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            row[v] = Problem::Epilogue::evaluate(row[v], rows[kAhead ? pixel : 0].values[v]);
    }
};

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void depthwise(Inputs<2 + Problem::Operands::count> inputs, int n, void* y)
{
    using Y = typename Problem::Y;
    constexpr int V = Schedule::vector, pixels = Schedule::pixels;
    static_assert(V == 1 || Problem::channelsFastest, "vectors run along the channels");
    static_assert(V * (pixels + Problem::filterW) <= 160, "sums and a row of weights stay in registers");
    using Part = RowPart<Problem::channels, Problem::paddingC, V>;
    constexpr int columns = Problem::q + Problem::paddingQ;
    using Place =
        PixelDomain<Problem::wide, Problem::channelsFastest, Problem::p, ceilDivide(columns, pixels), Part::chunks>;
    const int64 item = firstItem<Schedule::threads>();
    const bool inside = item < Place::items(n);
    const Place place(inside ? item : 0);
    const Part part(place.chunk);
    const int q0 = place.q * pixels;
    const bool computes = inside && part.valid > 0 && q0 < Problem::q;
    constexpr bool holds = detail::holdsWindow<Problem, V, pixels>;
    constexpr int ahead = holds ? Problem::filterH : 1;
    detail::Weights<Problem, V> weights[ahead][Problem::filterW];
    releaseIfEarly<Schedule>();
    WPK_UNROLL
    for (int r = 0; r < ahead; ++r)
    {
        if (computes)
            detail::loadFilterRow<Problem, V>(inputs.at[1], r, part.start, part.valid, weights[r]);
    }
    waitIfEarly<Schedule>(); // weights are constants: they may be asked for before
    if (!inside)
        return;
    float sums[pixels][V] = {};
    detail::PixelOperands<Problem, V, pixels> operands;
    operands.load(inputs.at + 2, part.valid, place.n, place.p, q0, part.start);
    if (computes)
    {
        if constexpr (holds)
            detail::convolveWindow<Problem, V, pixels>(
                inputs.at[0], place.n, place.p, q0, part.start, part.valid, weights, sums);
        else
            detail::convolveRows<Problem, V, pixels>(
                inputs.at[0], inputs.at[1], place.n, place.p, q0, part.start, part.valid, weights[0], sums);
    }
    WPK_UNROLL
    for (int pixel = 0; pixel < pixels; ++pixel)
    {
        const int q = q0 + pixel;
        if (q >= columns)
            continue;
        const int valid = q < Problem::q ? part.valid : 0;
        if (valid > 0)
            operands.apply(sums[pixel], inputs.at + 2, pixel, valid, place.n, place.p, q0, part.start);
        const int64 target = Y::offset(place.n, place.p, q, part.start);
        storeRowFromFloat<Y, V>(y, target, valid, part.room, sums[pixel]);
    }
}

} // namespace wpk
