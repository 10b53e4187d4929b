// Recurrences on the ordinary cores: a block has a few sequences and walks through all of their steps, their states
// in shared memory, so that no block waits for another one. Right for every problem, on every GPU.
//
// A warp has one unit at a time: its lanes multiply the unit's rows of R, which every step reads again, with the
// states of all the block's sequences; then each of the first lanes has a sequence.
//
// Problem: as in recurrent/cell.cuh; R over (row, column), Y over (sequence, step, column); steps, slots, isReverse,
// inputs. All is computed in the numbers of the activations (`NumberOf`).
#pragma once

#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/recurrent/cell.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

namespace detail
{

// The sequences of a block.
template <class Problem, class Schedule>
struct RecurrentBlock
{
    using Unit = RecurrentUnit<Problem>;
    using Number = typename Unit::Number;
    static constexpr int hidden = Problem::hidden, gates = Problem::gates, rows = Schedule::rows;
    static constexpr bool resetsFirst = Problem::cell == Cell::gru && !Problem::linearBeforeReset;
    static constexpr int kGroup = 4; // neighbours of a row that are loaded at once
    static constexpr int kBuffers = resetsFirst || Problem::cell == Cell::lstm ? 3 : 2;
    static_assert(Schedule::shared_bytes == kBuffers * rows * hidden * static_cast<int>(sizeof(Number)),
        "the schedule's shared memory");
    const void* const* inputs;
    void* y;
    int first, count; // sequences of this block
    // States [row][unit]: h in front of a step, h behind it, and c; or h, z and r h, and h is written in place.
    Number *now, *next, *third;

    // sums[gate][row] = rows `firstGate` .. of R for the unit times the states; all lanes have them.
    template <int Gates>
    WPK_DEVICE void multiply(const Number* states, int firstGate, int unit, Number (&sums)[Gates][rows]) const
    {
        for (int column = laneIndex() * kGroup; column < hidden; column += kWarpSize * kGroup)
        {
            const int valid = minOf(kGroup, hidden - column);
            WPK_UNROLL
            for (int gate = 0; gate < Gates; ++gate)
            {
                Number weights[kGroup];
                const int64 at = Problem::R::offset((firstGate + gate) * hidden + unit, column);
                loadRowAs<typename Problem::R, kGroup>(inputs[1], at, valid, weights);
                WPK_UNROLL
                for (int row = 0; row < rows; ++row)
                {
                    for (int i = 0; i < valid; ++i)
                        sums[gate][row] +=
                            weights[i] * load<Number, 1>(states + row * hidden + column + i)[0]; // @state_multiplied
                }
            }
        }
        WPK_UNROLL
        for (int gate = 0; gate < Gates; ++gate)
        {
            WPK_UNROLL
            for (int row = 0; row < rows; ++row)
                sums[gate][row] = warpSum(sums[gate][row]);
        }
    }

    // The sums of one sequence, whose number is the lane's.
    template <int Gates>
    static WPK_DEVICE void pick(const Number (&sums)[Gates][rows], Number (&own)[Gates])
    {
        WPK_UNROLL
        for (int gate = 0; gate < Gates; ++gate)
        {
            own[gate] = sums[gate][0];
            WPK_UNROLL
            for (int row = 1; row < rows; ++row)
                own[gate] = laneIndex() == row ? sums[gate][row] : own[gate];
        }
    }

    WPK_DEVICE void begin() const
    {
        for (int item = static_cast<int>(threadIdx.x); item < rows * hidden; item += Schedule::warps * kWarpSize)
        {
            const int row = item / hidden, unit = item % hidden;
            const bool inside = row < count;
            now[item] =
                inside ? firstState<typename Problem::H0, Problem::h0At, Number>(inputs, first + row, unit) : Number(0);
            if constexpr (Problem::cell == Cell::lstm)
                third[item] = inside
                                  ? firstState<typename Problem::C0, Problem::c0At, Number>(inputs, first + row, unit)
                                  : Number(0);
        }
        __syncthreads();
    }

    // Writes y, and the new state where the sequence has the step.
    WPK_DEVICE void put(Number* states, int step, int unit, Number fresh) const
    {
        const int row = laneIndex();
        const bool runs = step < stepsOf<Problem>(inputs, first + row);
        states[row * hidden + unit] = runs ? fresh : now[row * hidden + unit];
        storeState<Problem>(y, first + row, step, unit, runs ? fresh : Number(0));
    }

    WPK_DEVICE void step(int step)
    {
        for (int unit = warpIndex(); unit < hidden; unit += Schedule::warps)
        {
            Number sums[gates][rows] = {};
            multiply<gates>(now, 0, unit, sums);
            if (laneIndex() >= count)
                continue;
            const int row = laneIndex(), at = row * hidden + unit;
            Number own[gates], x[gates];
            pick<gates>(sums, own);
            Unit numbers;
            numbers.load(inputs, unit);
            Unit::loadInputs(inputs, first + row, step, unit, x);
            Number c = Problem::cell == Cell::lstm ? third[at] : Number(0);
            put(next, step, unit, numbers.next(x, own, now[at], c));
            if constexpr (Problem::cell == Cell::lstm)
            {
                if (step < stepsOf<Problem>(inputs, first + row))
                    third[at] = c;
            }
        }
        __syncthreads(); // @states_written
        Number* const before = now;
        now = next;
        next = before;
    }

    // A GRU whose r multiplies h in front of the product: what all units' r are needed for.
    WPK_DEVICE void resettingStep(int step)
    {
        for (int unit = warpIndex(); unit < hidden; unit += Schedule::warps)
        {
            Number sums[2][rows] = {};
            multiply<2>(now, 0, unit, sums);
            if (laneIndex() >= count)
                continue;
            const int at = laneIndex() * hidden + unit;
            Number own[2], x[gates];
            pick<2>(sums, own);
            Unit numbers;
            numbers.load(inputs, unit);
            Unit::loadInputs(inputs, first + laneIndex(), step, unit, x);
            next[at] = numbers.gruGate(0, x[0], own[0]);
            third[at] = numbers.gruGate(1, x[1], own[1]) * now[at];
        }
        __syncthreads(); // @reset_states_written
        for (int unit = warpIndex(); unit < hidden; unit += Schedule::warps)
        {
            Number sums[1][rows] = {};
            multiply<1>(third, 2, unit, sums);
            if (laneIndex() >= count)
                continue;
            const int at = laneIndex() * hidden + unit;
            Number own[1], x[gates];
            pick<1>(sums, own);
            Unit numbers;
            numbers.load(inputs, unit);
            Unit::loadInputs(inputs, first + laneIndex(), step, unit, x);
            put(now, step, unit, numbers.gruState(x[2], own[0], next[at], Number(1), now[at]));
        }
        __syncthreads(); // @states_written
    }

    // Writes the last states behind the steps.
    WPK_DEVICE void end() const
    {
        if constexpr (Problem::slots > 1)
        {
            for (int item = static_cast<int>(threadIdx.x); item < count * hidden; item += Schedule::warps * kWarpSize)
            {
                const int row = item / hidden, unit = item % hidden;
                const bool any = stepsOf<Problem>(inputs, first + row) > 0; // else zeros, as ONNX Runtime has it
                storeState<Problem>(y, first + row, Problem::steps, unit, any ? now[item] : Number(0));
                if constexpr (Problem::slots > 2)
                    storeState<Problem>(y, first + row, Problem::steps + 1, unit, any ? third[item] : Number(0));
            }
        }
    }
};

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void recurrenceSimt(Inputs<Problem::inputs> inputs, int n, void* y)
{
    using Block = detail::RecurrentBlock<Problem, Schedule>;
    constexpr int size = Schedule::rows * Problem::hidden;
    WPK_SHARED(typename Block::Number, states);
    const int first = static_cast<int>(blockIdx.x) * Schedule::rows;
    Block block{inputs.at, y, first, minOf(Schedule::rows, n - first), states, states + size, states + 2 * size};
    block.begin();
    for (int number = 0; number < Problem::steps; ++number)
    {
        const int step = Problem::isReverse ? Problem::steps - 1 - number : number;
        if constexpr (Block::resetsFirst)
            block.resettingStep(step);
        else
            block.step(step);
    }
    block.end();
}

} // namespace wpk
