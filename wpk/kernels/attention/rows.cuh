// The rows of a softmax that goes on from step to step of keys, as both forms of products leave scores in the registers
// of a warp: sixteen rows each (the layout D of mma.cuh).
//
// Exponentials are relative to the largest score so far; what was summed before is scaled down where a larger one comes
// (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022,
// algorithm 1).
//
// Shape says warpsN, how many warps share rows; blockN, a warp's keys of a step, keys, those of all; pairsN and pairsD,
// pairs of tiles of eight keys, and of eight columns of the result; exactWeights; and foldsScale, whether a scale is
// multiplied with what exponentials are multiplied with anyway.
#pragma once

#include <wpk/kernels/attention/lengths.cuh>
#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/numbers/near_exponential.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

// Two neighbours of a row of weights, as one word of a fragment.
template <class T>
WPK_DEVICE uint32 packPair(float first, float second)
{
    const Vector<T, 2> pair{{fromFloat<T>(first), fromFloat<T>(second)}};
    uint32 word;
    memcpy(&word, &pair, sizeof(word));
    return word;
}

// Asks for what no kernel writes of the scores' operands: of a block's rows, under the keys of so many steps. Those of
// all rows are mostly masks, which are few.
template <class Problem, class Shape, class Lengths>
WPK_DEVICE void prefetchBiases(const void* const* operands, const Lengths& lengths, const AttentionPlace& at, int steps)
{
    constexpr int kColumns = 8; // half a sector, of fp32 a whole one
    if constexpr (Problem::operand_constants != 0)
    {
        const int keys = minOf(lengths.keys(), steps * Shape::keys), ofRow = ceilDivide(keys, kColumns);
        const int firstRow = at.block * Shape::rows;
        const int rows = minOf(Shape::rows, lengths.queries() - firstRow); // @bias_rows
        WPK_KEEP_LOOP
        for (int item = static_cast<int>(threadIdx.x); item < rows * ofRow; item += Shape::threads)
            prefetchConstants<Problem::operand_constants>(typename Problem::Operands{}, operands,
                lengths.firstKey(at.matrix), at.head, firstRow + item / ofRow, item % ofRow * kColumns);
    }
}

// Scores that are the product times a positive number, and that number.
template <class Expression>
struct ScoreScale
{
    static constexpr bool isAll = false;
};
template <>
struct ScoreScale<Acc>
{
    static constexpr bool isAll = true;
    static WPK_DEVICE float value()
    {
        return 1.0f;
    }
};
template <uint32 Bits>
struct ScoreScale<Mul<Acc, Scalar<Bits>>>
{
    static constexpr bool isAll = 0 < Bits && Bits < 0x7f800000u; // neither a sign nor infinite
    static WPK_DEVICE float value()
    {
        return asFloat(Bits);
    }
};

// The sixteen rows of a warp: [0] of a pair is row lane / 4, [1] the one 8 below.
template <class Problem, class Shape, class Lengths>
struct AttentionRows
{
    using Scale = ScoreScale<typename Problem::Scores>;
    // Then scores stay bare products, and the scale is part of the powers' factor: one operation less for each of them,
    // and one with its difference.
    static constexpr bool kIsFolded = Shape::foldsScale && Scale::isAll;
    Lengths lengths;
    float top[2] = {asFloat(0xff800000u), asFloat(0xff800000u)};
    float sum[2] = {};
    float weighted[Shape::pairsD][1][2][4] = {};
    float scores[Shape::pairsN][1][2][4];
    OperandRows<typename Problem::Operands, 2> operands[Shape::pairsN * 2][2];

    WPK_DEVICE int row() const
    {
        return warpIndex() / Shape::warpsN * 16 + laneIndex() / 4;
    }
    WPK_DEVICE int part() const
    {
        return warpIndex() % Shape::warpsN;
    }
    // The first of this lane's two keys of tile `tile`, of those of a step.
    WPK_DEVICE int key(int tile) const
    {
        return part() * Shape::blockN + tile * 8 + laneIndex() % 4 * 2;
    }

    // What the scores are computed with, of the keys from firstKey on.
    WPK_DEVICE void loadOperands(const void* const* pointers, int matrix, int head, int firstRow, int firstKey)
    {
        if constexpr (Problem::Operands::count > 0)
        {
            WPK_UNROLL
            for (int i = 0; i < Shape::pairsN * 4; ++i)
            {
                const int column = firstKey + key(i / 2), query = firstRow + row() + i % 2 * 8; // @mask_row
                const int valid = minOf(2, lengths.keys() - column);
                if (valid > 0)
                    operands[i / 2][i % 2].load(
                        pointers, valid, lengths.firstKey(matrix), head, minOf(query, lengths.queries() - 1), column);
            }
        }
    }

    // Scores become weights relative to the largest score so far; returns what earlier sums are multiplied by.
    WPK_DEVICE void weigh(int firstKey, float (&factor)[2])
    {
        float largest[2] = {top[0], top[1]};
        WPK_UNROLL
        for (int i = 0; i < Shape::pairsN * 8 && !kIsFolded; ++i)
        {
            float& score = scores[i / 8][0][i / 4 % 2][i % 4];
            const int half = i % 4 / 2;
            score = Problem::Scores::evaluate(score, operands[i / 4][half].values[i % 2]);
        }
        if (firstKey + Shape::keys > lengths.keys()) // @last_step
            hideBeyond(firstKey);
        WPK_UNROLL
        for (int i = 0; i < Shape::pairsN * 8; ++i)
            largest[i % 4 / 2] = fmaxf(largest[i % 4 / 2], scores[i / 8][0][i / 4 % 2][i % 4]);
        float origin[2];
        WPK_UNROLL
        for (int half = 0; half < 2; ++half)
        {
            largest[half] = fmaxf(largest[half], shuffleXor(largest[half], 1));
            largest[half] = fmaxf(largest[half], shuffleXor(largest[half], 2)); // @largest_shared
            const float before = top[half];
            top[half] = largest[half];
            origin[half] = originOf(half);
            factor[half] = weight(before, origin[half]);
            sum[half] *= factor[half]; // @sum_rescaled
        }
        WPK_UNROLL
        for (int i = 0; i < Shape::pairsN * 8; ++i)
        {
            float& score = scores[i / 8][0][i / 4 % 2][i % 4];
            score = weight(score, origin[i % 4 / 2]);
            sum[i % 4 / 2] += score;
        }
    }

    // Keys of a step that are behind the last one have no weight.
    WPK_DEVICE void hideBeyond(int firstKey)
    {
        WPK_UNROLL
        for (int i = 0; i < Shape::pairsN * 8; ++i)
            if (firstKey + key(i / 4) + i % 2 >= lengths.keys()) // @last_key
                scores[i / 8][0][i / 4 % 2][i % 4] = asFloat(0xff800000u);
    }

private:
    // What exponents are relative to: 0 as long as all scores were -inf, whose differences are no numbers.
    WPK_DEVICE float originOf(int half) const
    {
        const float score = top[half] == asFloat(0xff800000u) ? 0.0f : top[half];
        if constexpr (kIsFolded)
            return score * powerScale();
        else
            return score;
    }
    static WPK_DEVICE float powerScale()
    {
        return Scale::value() * 1.4426950408889634f; // @scale_folded
    }
    // exp(scale * score - what originOf is).
    static WPK_DEVICE float weight(float score, float origin)
    {
        if constexpr (kIsFolded)
            return nearPowerOfTwo(score * powerScale() - origin);
        else
            return weightOf<Shape::exactWeights>(score - origin);
    }
};

} // namespace wpk
