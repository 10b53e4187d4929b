// What normalisations of rows share: the statistics of a row, and the operands of what follows.
//
// A Row has Number, V (neighbouring elements of a thread), runs (of V elements, of a thread), isCached (whether the
// values stay in registers), aheadWords (registers for operands that are asked for early), count (elements of the whole
// row), and
//   valid(run)                        elements of a run that lie in the row; none where zero or negative
//   load(operands, pointers, run)     the operands of a run
//   reduce<isMaximum>(f)              the sum or maximum of f(value) over the whole row, in every thread
#pragma once

#include <wpk/kernels/operands/tensor.cuh>

namespace wpk
{

enum class NormKind
{
    softmax,
    logSoftmax,
    layer,
    rms
};

namespace detail
{

// A thread's part of a row: runs of V elements, whose values (the prologue's) stay in registers between the passes over
// the row where the schedule caches them; otherwise every pass computes them again. Row derives from it, and says how
// many elements of a run lie in the row (valid) and how operands of a run are loaded (load), from `inputs`.
template <class Row, class Problem, class Schedule, int Runs>
struct NormValues
{
    using Number = NumberOf<typename Problem::Epilogue>;
    static_assert(isSame<Number, NumberOf<typename Problem::Prologue>>, "all is computed in numbers of one type");
    static constexpr int V = Schedule::vector, runs = Runs;
    static constexpr bool isCached = Schedule::cached != 0;
    Number cached[isCached ? runs : 1][V];

    // f(run) for every run; unrolled where registers are indexed by it.
    template <class Function>
    static WPK_DEVICE void forRuns(Function f)
    {
        if constexpr (isCached)
        {
            WPK_UNROLL
            for (int run = 0; run < runs; ++run)
                f(run);
        }
        else
        {
            for (int run = 0; run < runs; ++run)
                f(run);
        }
    }

    // Keeps the values, where the schedule says so.
    WPK_DEVICE void prepare()
    {
        if constexpr (isCached)
            forRuns([this](int run) { compute(run, cached[run]); });
    }

    // Those of a run; 0 beyond the row.
    WPK_DEVICE void values(int run, Number (&row)[V]) const
    {
        if constexpr (isCached)
        {
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
                row[v] = cached[run][v];
        }
        else
        {
            compute(run, row);
        }
    }

    // The sum or maximum of f(value) over those of this thread.
    template <bool IsMaximum, class Function>
    WPK_DEVICE Number reduceOwn(Function f) const
    {
        Number own = IsMaximum ? asFloat(0xff800000u) : 0.0f;
        forRuns(
            [&](int run)
            {
                Number row[V];
                values(run, row);
                WPK_UNROLL
                for (int v = 0; v < V; ++v)
                {
                    if (v >= self().valid(run))
                        continue;
                    own = IsMaximum ? largerNumber(own, f(row[v])) : own + f(row[v]); // @taken
                }
            });
        return own;
    }

private:
    WPK_DEVICE const Row& self() const
    {
        return static_cast<const Row&>(*this);
    }
    WPK_DEVICE void compute(int run, Number (&row)[V]) const
    {
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            row[v] = Number(0);
        if (self().valid(run) <= 0)
            return;
        OperandRows<typename Problem::Inputs, V, Number> operands;
        self().load(operands, self().inputs, run);
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            row[v] = Problem::Prologue::evaluate(Number(0), operands.values[v]);
    }
};

// The epilogue's operands of a thread's part of the row: loaded together with the row where they are few, so that
// they are there when the row's statistics are; and in front of the wait, if no kernel writes them.
template <class Problem, class Row>
struct NormTail
{
    static constexpr int V = Row::V;
    using Number = typename Row::Number;
    using Operands = OperandRows<typename Problem::Operands, V, Number>;
    static constexpr int kWords = V * Row::runs * Operands::count * static_cast<int>(sizeof(Number)) / 4;
    static constexpr bool kAhead = Row::isCached && kWords <= Row::aheadWords;
    static constexpr int kAll = (1 << Operands::count) - 1;
    static constexpr bool kBeforeWait = kAhead && Problem::operand_constants == kAll; // @tail_constant
    Operands ahead[kAhead ? Row::runs : 1];

    WPK_DEVICE void load(const Row& row, const void* const* pointers)
    {
        WPK_UNROLL
        for (int run = 0; kAhead && run < Row::runs; ++run)
            loadRun(ahead[run], row, pointers, run);
    }

    // The epilogue of run `run`.
    WPK_DEVICE void apply(Number (&values)[V], const Row& row, const void* const* pointers, int run)
    {
        if constexpr (!kAhead)
            loadRun(ahead[0], row, pointers, run);
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            values[v] = Problem::Epilogue::evaluate(values[v], ahead[kAhead ? run : 0].values[v]);
    }

private:
    static WPK_DEVICE void loadRun(Operands& operands, const Row& row, const void* const* pointers, int run)
    {
        if (row.valid(run) > 0)
            row.load(operands, pointers, run);
    }
};

// y = (value - shift) * scale, or exp(value - shift) * scale for a softmax.
template <class Number>
struct NormScale
{
    Number shift, scale;

    template <NormKind Kind>
    WPK_DEVICE Number applied(Number value) const
    {
        const Number centred = value - shift;
        return (Kind == NormKind::softmax ? exponential(centred) : centred) * scale;
    }
};

// A row of only -inf has -inf - -inf = NaN everywhere, as ONNX has.
template <class Problem, class Row>
WPK_DEVICE NormScale<typename Row::Number> normScale(const Row& row)
{
    using Number = typename Row::Number;
    if constexpr (Problem::kind == NormKind::softmax || Problem::kind == NormKind::logSoftmax)
    {
        const Number top = row.template reduce<true>([](Number value) { return value; });
        const Number sum = row.template reduce<false>([top](Number value) { return exponential(value - top); });
        if constexpr (Problem::kind == NormKind::softmax)
            return {top, reciprocal(sum)};
        return {top + logarithm(sum), Number(1)};
    }
    else
    {
        constexpr Number share = Number(1) / static_cast<Number>(Row::count);
        Number mean = Number(0);
        if constexpr (Problem::kind == NormKind::layer)
        {
            mean = row.template reduce<false>([](Number value) { return value; }) * share;
        }
        const Number squares =
            row.template reduce<false>([mean](Number value) { return (value - mean) * (value - mean); });
        return {mean, reciprocalRoot(squares * share + asFloat(Problem::epsilon))};
    }
}

} // namespace detail

} // namespace wpk
