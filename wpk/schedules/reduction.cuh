// Sums, means, products, maxima and minima over some axes.
//
// A block computes `outputs` items with `splits` threads each; every thread reduces its share of the inner
// elements in registers, then the shares are combined through shared memory, halving their number. Along
// the outer axis (alongOuter) an item is V neighbouring outputs and neighbouring threads hold neighbouring
// items; otherwise an item is one output, and neighbouring threads take neighbouring runs of V inner elements.
//
// What is reduced is computed in the numbers of the epilogue (`NumberOf`).
//
// Problem: Inputs over (leading, o1, o2, i1, i2, i3, row) alongOuter, else (leading, o1, o2, row, i1, i2, i3);
// Y and Operands over (leading, o1, o2, row); kind; Prologue; Epilogue; rowPadding: zeros that follow y's rows.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>

namespace wpk
{

enum class ReduceKind
{
    sum,
    mean,
    max,
    min,
    prod
};

namespace detail
{

template <ReduceKind Kind, class Number>
WPK_DEVICE Number reduceIdentity()
{
    if constexpr (Kind == ReduceKind::prod)
        return Number(1);
    if constexpr (Kind == ReduceKind::max)
        return asFloat(0xff800000u); // -inf
    if constexpr (Kind == ReduceKind::min)
        return asFloat(0x7f800000u);
    return Number(0);
}

// Maxima and minima hand a NaN on.
template <ReduceKind Kind, class Number>
WPK_DEVICE Number reduceTwo(Number a, Number b)
{
    if constexpr (Kind == ReduceKind::max)
    {
        return larger(a, b);
    }
    else if constexpr (Kind == ReduceKind::min)
    {
        return smaller(a, b);
    }
    else if constexpr (Kind == ReduceKind::prod)
    {
        return a * b;
    }
    else
    {
        return a + b;
    }
}

// Reduces share `share` of `Splits` of the inner elements of the item at (leading, o1, o2, row). Loads go out in
// groups, as many as a few registers hold.
template <class Problem, int V, int Outputs, int Splits, class Number>
WPK_DEVICE void reduceShare(
    const void* const* inputs, int leading, int o1, int o2, int row, int valid, int share, Number (&sums)[V])
{
    using Operands = OperandRows<typename Problem::Inputs, V, Number>;
    constexpr bool outer = Problem::alongOuter;
    constexpr int runs = outer ? Problem::i3 : ceilDivide(Problem::i3, V);
    constexpr int total = Problem::i1 * Problem::i2 * runs, steps = ceilDivide(total, Splits);
    constexpr int words = minOf(64, 32768 / (Outputs * Splits)); // of large blocks, a thread has few registers
    constexpr int elements = words * 4 / static_cast<int>(sizeof(Number));
    constexpr int atOnce = minOf(steps, maxOf(1, minOf(8, elements / (V * maxOf(1, Operands::count)))));
    WPK_UNROLL
    for (int v = 0; v < V; ++v)
        sums[v] = reduceIdentity<Problem::kind, Number>();
    WPK_KEEP_LOOP
    for (int first = share; first < total; first += atOnce * Splits)
    {
        Operands operands[atOnce];
        int present[atOnce]; // elements of a run
        WPK_UNROLL
        for (int j = 0; j < atOnce; ++j)
        {
            // Behind the end the last run is loaded again, and not used: a branch would make loads wait for each other.
            const int i = minOf(first + j * Splits, total - 1);
            const int i1 = i / (Problem::i2 * runs), i2 = i / runs % Problem::i2, i3 = i % runs * (outer ? 1 : V);
            present[j] = outer ? valid : (Problem::i3 % V == 0 ? V : minOf(V, Problem::i3 - i3));
            if constexpr (outer)
                operands[j].load(inputs, present[j], leading, o1, o2, i1, i2, i3, row);
            else
                operands[j].load(inputs, present[j], leading, o1, o2, row, i1, i2, i3);
        }
        WPK_UNROLL
        for (int j = 0; j < atOnce; ++j)
        {
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
            {
                if (v >= present[j] || first + j * Splits >= total)
                    continue;
                const Number value = Problem::Prologue::evaluate(Number(0), operands[j].values[v]);
                sums[v] = reduceTwo<Problem::kind>(sums[v], value); // @reduced
            }
        }
    }
}

// Combines the shares of every item; share 0 holds the result.
template <ReduceKind Kind, int Outputs, int Splits, class Number, int V>
WPK_DEVICE void combineShares(int output, int share, Number (&sums)[V])
{
    __shared__ Number shares[Splits > 1 ? Splits * Outputs * V : 1];
    // Neighbouring threads write neighbouring words.
    Number* const own = shares + share * Outputs + output;
    constexpr int plane = Splits * Outputs;
    if constexpr (Splits > 1)
    {
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            own[v * plane] = sums[v];
        for (int half = Splits / 2; half > 0; half /= 2)
        {
            __syncthreads();
            if (share >= half)
                continue;
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
            {
                sums[v] = reduceTwo<Kind>(sums[v], own[v * plane + half * Outputs]);
                own[v * plane] = sums[v];
            }
        }
    }
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void reduction(Inputs<Problem::Inputs::count + Problem::Operands::count> inputs, int n, void* y)
{
    using Y = typename Problem::Y;
    using Number = NumberOf<typename Problem::Epilogue>;
    static_assert(isSame<Number, NumberOf<typename Problem::Prologue>>, "all is computed in numbers of one type");
    constexpr int V = Schedule::vector, outputs = Schedule::outputs, splits = Schedule::splits;
    constexpr bool outer = Problem::alongOuter;
    constexpr int W = outer ? V : 1; // outputs of an item
    using Part = RowPart<Problem::row, Problem::rowPadding, W>;
    using Place = Domain<Problem::wide, Problem::o1, Problem::o2, Part::chunks>;
    const int thread = static_cast<int>(threadIdx.x);
    const int output = outer ? thread % outputs : thread / splits;
    const int share = outer ? thread / outputs : thread % splits;
    const int64 item = static_cast<int64>(blockIdx.x) * outputs + output;
    const bool inside = item < Place::items(n);
    const Place at(inside ? item : 0);
    const Part part(at.at[2]);
    Number sums[V] = {};
    releaseIfEarly<Schedule>();
    if (inside && share == 0 && part.valid > 0)
        prefetchConstants<Problem::operand_constants>(typename Problem::Operands{}, inputs.at + Problem::Inputs::count,
            at.leading, at.at[0], at.at[1], part.start);
    waitIfEarly<Schedule>(); // @previous_awaited
    if (inside && part.valid > 0)
    {
        detail::reduceShare<Problem, V, outputs, splits>(
            inputs.at, at.leading, at.at[0], at.at[1], part.start, part.valid, share, sums);
    }
    detail::combineShares<Problem::kind, outputs, splits>(output, share, sums);
    if (!inside || share != 0)
        return;
    Number result[W];
    WPK_UNROLL
    for (int w = 0; w < W; ++w)
        result[w] = sums[w];
    if constexpr (!outer)
    {
        WPK_UNROLL
        for (int v = 1; v < V; ++v)
            result[0] = detail::reduceTwo<Problem::kind>(result[0], sums[v]);
    }
    if constexpr (Problem::kind == ReduceKind::mean)
    {
        WPK_UNROLL
        for (int w = 0; w < W; ++w)
            result[w] /= static_cast<Number>(Problem::i1 * Problem::i2 * Problem::i3);
    }
    if (part.valid > 0)
    {
        applyToRow<typename Problem::Epilogue, typename Problem::Operands, W>(
            result, inputs.at + Problem::Inputs::count, part.valid, at.leading, at.at[0], at.at[1], part.start);
    }
    storeRowOf<Y, W>(y, Y::offset(at.leading, at.at[0], at.at[1], part.start), part.valid, part.room, result);
}

} // namespace wpk
