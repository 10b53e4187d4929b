// What one unit of LSTM, GRU or RNN does at a step, once the products of its rows of R and the state are summed.
//
// Problem: cell; hidden, gates; linearBeforeReset, isClipped, clip as fp32 bits; F, G and H, activations over the sum;
// P over (sequence, step, column), Bias and Peepholes over columns, H0 and C0 over (sequence, column), Lengths over
// sequences; biasAt, lengthsAt, h0At, c0At, peepholesAt: their places among the inputs, 0 where one is missing. All is
// computed in the numbers of the activations (`NumberOf`).
#pragma once

#include <wpk/kernels/operands/tensor.cuh>

namespace wpk
{

enum class Cell
{
    lstm,
    gru,
    rnn
};

// A unit's numbers that no step changes.
template <class Problem>
struct RecurrentUnit
{
    using Number = NumberOf<typename Problem::F>;
    static constexpr int gates = Problem::gates;
    static constexpr bool isGru = Problem::cell == Cell::gru, isLstm = Problem::cell == Cell::lstm;
    Number inputBias[gates], stateBias[isGru ? gates : 1], peepholes[isLstm ? 3 : 1];

    WPK_DEVICE void load(const void* const* inputs, int unit)
    {
        WPK_UNROLL
        for (int gate = 0; gate < gates; ++gate)
        {
            Number both[2] = {};
            if constexpr (Problem::biasAt != 0)
            {
                const int column = gate * Problem::hidden + unit;
                both[0] = element<typename Problem::Bias>(inputs[Problem::biasAt], column);
                both[1] = element<typename Problem::Bias>(inputs[Problem::biasAt], gates * Problem::hidden + column);
            }
            inputBias[gate] = isGru ? both[0] : both[0] + both[1];
            if constexpr (isGru)
                stateBias[gate] = both[1];
        }
        if constexpr (Problem::peepholesAt != 0)
        {
            WPK_UNROLL
            for (int gate = 0; gate < 3; ++gate)
                peepholes[gate] =
                    element<typename Problem::Peepholes>(inputs[Problem::peepholesAt], gate * Problem::hidden + unit);
        }
    }

    // The gates' inputs at a step, without what the state adds.
    static WPK_DEVICE void loadInputs(
        const void* const* inputs, int sequence, int step, int unit, Number (&values)[gates])
    {
        WPK_UNROLL
        for (int gate = 0; gate < gates; ++gate)
        {
            Number one[1];
            const int64 at = Problem::P::offset(sequence, step, gate * Problem::hidden + unit);
            loadRowAs<typename Problem::P, 1>(inputs[0], at, 1, one);
            values[gate] = one[0];
        }
    }

    // LSTM: the new h; `c` becomes the new one.
    WPK_DEVICE Number lstm(const Number (&x)[gates], const Number (&sums)[gates], Number& c) const
    {
        constexpr bool looks = Problem::peepholesAt != 0;
        const Number before = c;
        const auto gate = [&](int number, Number seen, int hole)
        {
            return x[number] + sums[number] + inputBias[number] + (looks ? peepholes[hole] * seen : Number(0));
        };
        const Number i = activated<typename Problem::F>(gate(0, before, 0));
        const Number f = activated<typename Problem::F>(gate(2, before, 2));
        const Number g = activated<typename Problem::G>(x[3] + sums[3] + inputBias[3]);
        c = f * before + i * g;
        const Number o = activated<typename Problem::F>(gate(1, c, 1));
        const Number none[1] = {};
        return o * Problem::H::evaluate(c, none);
    }

    // GRU: the gates z and r.
    WPK_DEVICE Number gruGate(int number, Number x, Number sum) const
    {
        return activated<typename Problem::F>(x + inputBias[number] + sum + stateBias[number]);
    }
    // GRU: the new h, of the sum that the state adds to the last gate; r is in it already where it multiplies h.
    WPK_DEVICE Number gruState(Number x, Number sum, Number z, Number r, Number h) const
    {
        const Number hidden = sum + stateBias[2];
        const Number added = Problem::linearBeforeReset ? r * hidden : hidden;
        const Number fresh = activated<typename Problem::G>(x + inputBias[2] + added);
        return (Number(1) - z) * fresh + z * h;
    }

    WPK_DEVICE Number rnn(Number x, Number sum) const
    {
        return activated<typename Problem::F>(x + sum + inputBias[0]);
    }

    // The new h of all but a GRU that resets h itself; `c` is used by an LSTM only.
    WPK_DEVICE Number next(const Number (&x)[gates], const Number (&sums)[gates], Number h, Number& c) const
    {
        if constexpr (isLstm)
        {
            return lstm(x, sums, c);
        }
        else if constexpr (isGru)
        {
            const Number z = gruGate(0, x[0], sums[0]), r = gruGate(1, x[1], sums[1]);
            return gruState(x[2], sums[2], z, r, h);
        }
        else
        {
            return rnn(x[0], sums[0]);
        }
    }

    template <class Activation>
    static WPK_DEVICE Number activated(Number sum)
    {
        const Number limit = asFloat(static_cast<uint32>(Problem::clip));
        const Number none[1] = {};
        return Activation::evaluate(Problem::isClipped ? smaller(larger(sum, -limit), limit) : sum, none);
    }

private:
    template <class TensorType>
    static WPK_DEVICE Number element(const void* base, int index)
    {
        Number one[1];
        loadRowAs<TensorType, 1>(base, TensorType::offset(index), 1, one);
        return one[0];
    }
};

// A first state; 0 where none is given.
template <class TensorType, int Place, class Number = float>
WPK_DEVICE Number firstState(const void* const* inputs, int sequence, int unit)
{
    Number one[1] = {};
    if constexpr (Place != 0)
        loadRowAs<TensorType, 1>(inputs[Place], TensorType::offset(sequence, unit), 1, one);
    return one[0];
}

// Steps of a sequence.
template <class Problem>
WPK_DEVICE int stepsOf(const void* const* inputs, int sequence)
{
    if constexpr (Problem::lengthsAt != 0)
        return static_cast<const int*>(inputs[Problem::lengthsAt])[Problem::Lengths::offset(sequence)];
    else
        return Problem::steps;
}

// Writes a state behind the steps, or one of them.
template <class Problem, class Number>
WPK_DEVICE void storeState(void* y, int sequence, int slot, int unit, Number value)
{
    using Y = typename Problem::Y;
    const Number one[1] = {value};
    storeRowOf<Y, 1>(y, Y::offset(sequence, slot, unit), 1, 1, one);
}

} // namespace wpk
