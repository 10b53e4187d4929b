// What the threads of a recurrence's team keep of their units from step to step, and what each step makes of it.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/recurrent/cell.cuh>

namespace wpk
{

namespace detail
{

// What a thread keeps of its units: an element is a unit of a sequence.
template <class Team, class Problem>
struct RecurrentElements
{
    using Unit = RecurrentUnit<Problem>;
    using Type = typename Team::Type;
    const void* const* inputs;
    int firstUnit, firstColumn, columns; // of the team's sequences there are `columns`
    float h[Team::own], c[Team::own], x[Team::own][Team::gates];
    int lengths[Team::own];
    Unit numbers[Team::own];

    static WPK_DEVICE int element(int number)
    {
        return static_cast<int>(threadIdx.x) + number * Team::threads;
    }
    static WPK_DEVICE bool isElement(int number)
    {
        return Team::elements % Team::threads == 0 || element(number) < Team::elements;
    }
    static WPK_DEVICE int column(int number)
    {
        return element(number) / Team::kUnits % Team::columns;
    }
    static WPK_DEVICE int tileRow(int number)
    {
        return element(number) / (Team::kUnits * Team::columns); // which 16 of the block's units
    }
    WPK_DEVICE int unit(int number) const
    {
        return firstUnit + tileRow(number) * Team::kUnits + element(number) % Team::kUnits;
    }
    WPK_DEVICE bool isThere(int number) const
    {
        return isElement(number) && column(number) < columns;
    }

    WPK_DEVICE void begin()
    {
        WPK_UNROLL
        for (int number = 0; number < Team::own; ++number)
        {
            h[number] = c[number] = 0.0f;
            lengths[number] = 0;
            if (!isThere(number))
                continue;
            const int sequence = firstColumn + column(number);
            h[number] = firstState<typename Problem::H0, Problem::h0At>(inputs, sequence, unit(number));
            if constexpr (Problem::cell == Cell::lstm)
                c[number] = firstState<typename Problem::C0, Problem::c0At>(inputs, sequence, unit(number));
            lengths[number] = stepsOf<Problem>(inputs, sequence);
            numbers[number].load(inputs, unit(number));
        }
    }

    // The gates' inputs at a step: early, for they come from far.
    WPK_DEVICE void prepare(int step)
    {
        WPK_UNROLL
        for (int number = 0; number < Team::own; ++number)
        {
            if (isThere(number))
                Unit::loadInputs(inputs, firstColumn + column(number), step, unit(number), x[number]);
        }
    }

    // The sum of all warps' parts; in the order of the warps.
    static WPK_DEVICE float total(const float* sums, int tile, int number)
    {
        float sum = 0.0f;
        WPK_UNROLL
        for (int warp = 0; warp < Team::warps; ++warp)
        {
            const int at = ((warp * Team::tiles + tile) * Team::columns + column(number)) * Team::sumStride;
            sum += wpk::load<float, 1>(sums + at + element(number) % Team::kUnits)[0];
        }
        return sum;
    }

    WPK_DEVICE void step(const float* sums, int step)
    {
        WPK_UNROLL
        for (int number = 0; number < Team::own; ++number)
        {
            if (!isThere(number) || step >= lengths[number])
                continue;
            float all[Team::gates];
            WPK_UNROLL
            for (int gate = 0; gate < Team::gates; ++gate)
                all[gate] = total(sums, tileRow(number) * Team::gates + gate, number);
            h[number] = numbers[number].next(x[number], all, h[number], c[number]);
        }
    }

    // Writes y, behind what other blocks wait for.
    WPK_DEVICE void put(void* y, int step) const
    {
        WPK_UNROLL
        for (int number = 0; number < Team::own; ++number)
        {
            if (isThere(number))
            {
                const float value = step < lengths[number] ? h[number] : 0.0f;
                storeState<Problem>(y, firstColumn + column(number), step, unit(number), value);
            }
        }
    }

    WPK_DEVICE void end(void* y) const
    {
        WPK_UNROLL
        for (int number = 0; number < Team::own; ++number)
        {
            if (Problem::slots < 2 || !isThere(number))
                continue;
            const bool any = lengths[number] > 0; // else zeros, as ONNX Runtime has it
            const int sequence = firstColumn + column(number);
            storeState<Problem>(y, sequence, Problem::steps, unit(number), any ? h[number] : 0.0f);
            if constexpr (Problem::slots > 2)
                storeState<Problem>(y, sequence, Problem::steps + 1, unit(number), any ? c[number] : 0.0f);
        }
    }
};

// The first states of all units, which every block reads itself; zeros where a sequence is missing.
template <class Team, class Problem>
WPK_DEVICE void loadFirstStates(const void* const* inputs, typename Team::Type* states, int first, int count)
{
    using Type = typename Team::Type;
    for (int item = static_cast<int>(threadIdx.x); item < Team::columns * Team::hidden; item += Team::threads)
    {
        const int column = item / Team::hidden, unit = item % Team::hidden;
        float value = 0.0f;
        if (column < count)
            value = firstState<typename Problem::H0, Problem::h0At>(inputs, first + column, unit);
        store<Type, 1>(states + column * Team::stride + unit, {{fromFloat<Type>(value)}});
    }
}

} // namespace detail

} // namespace wpk
